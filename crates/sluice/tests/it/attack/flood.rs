//! Floods: connections, streams and requests that are to stop the server for others.
