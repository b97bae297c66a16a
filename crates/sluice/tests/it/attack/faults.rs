//! Faults of the machine: a full disk, a removed directory, few file handles.
