//! Why octets did not parse: which layer, where, and what was wrong.

/// A refusal to read octets as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer} at octet {offset}: {reason}")]
pub struct ParseError {
    /// The header or trailer being read ("LRH", "BTH", "VCRC").
    pub layer: &'static str,
    /// Where it begins, counted from the first octet of the frame.
    pub offset: usize,
    /// What was wrong.
    pub reason: Reason,
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The octets end too early.
    #[error("needs {needed} octets, {present} are left")]
    Short {
        /// Octets the layer needs.
        needed: usize,
        /// Octets left.
        present: usize,
    },
    /// A length field disagrees with the octets.
    #[error("says {said} octets, {present} are there")]
    Length {
        /// What the field says.
        said: usize,
        /// What is there.
        present: usize,
    },
    /// A version field holds an unknown version.
    #[error("unknown version {0}")]
    Version(u8),
    /// A check failed.
    #[error("check {computed:#x} expected, {present:#x} found")]
    Check {
        /// Computed here.
        computed: u32,
        /// Found in the frame.
        present: u32,
    },
    /// A combination of fields that the standard does not allow.
    #[error("{0}")]
    Illegal(&'static str),
}
