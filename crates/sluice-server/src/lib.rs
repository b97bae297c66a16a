//! What can be asked of Sluice, and over the network.
