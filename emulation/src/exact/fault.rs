//! Faults: what ends an exact run, because its result would not be that of the virtual clock.

/// A neighbour broke the protocol of promises, or is silent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cable {cable} to process {peer}: {what}")]
pub struct Fault {
    /// The process of the far end.
    pub peer: usize,
    /// The cable, as `node:port – node:port`; one of several if the fault concerns all between two processes.
    pub cable: String,
    /// What happened.
    pub what: String,
}
