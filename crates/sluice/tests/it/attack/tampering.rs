//! Tampering: the store changed by hand, with the server stopped and with it running.
