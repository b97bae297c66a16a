//! Secrets: what a row, a step or a stranger tries to read or to have written down.
