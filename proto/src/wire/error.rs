//! Why octets did not parse: which layer, where, and what was wrong.

use crate::counters::DropReason;

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

impl ParseError {
    /// The octets of `layer` end too early.
    pub const fn short(
        layer: &'static str,
        offset: usize,
        needed: usize,
        present: usize,
    ) -> ParseError {
        ParseError { layer, offset, reason: Reason::Short { needed, present } }
    }

    /// A length in `layer` disagrees with the octets.
    pub const fn length(
        layer: &'static str,
        offset: usize,
        said: usize,
        present: usize,
    ) -> ParseError {
        ParseError { layer, offset, reason: Reason::Length { said, present } }
    }

    /// The same refusal, seen from a frame in which the header begins at `offset`.
    pub const fn within(self, offset: usize) -> ParseError {
        ParseError { offset: self.offset + offset, ..self }
    }

    /// Under which reason a device counts a frame refused so.
    ///
    /// What is wrong with a link packet or a MAC control frame never leaves its link, so it has
    /// reasons of its own and stays out of the end-to-end sum.
    pub fn drop_reason(&self) -> DropReason {
        match (self.layer, self.reason) {
            ("LPCRC", _) => DropReason::Lpcrc,
            ("FCP", _) => DropReason::LinkPacket,
            ("MAC control", Reason::Illegal(_)) => DropReason::MacControlTag,
            ("MAC control" | "PAUSE" | "PFC", _) => DropReason::MacControlLength,
            ("IPv4" | "UDP", Reason::Check { .. }) => DropReason::Checksum,
            ("VCRC", Reason::Check { .. }) => DropReason::Vcrc,
            ("ICRC", Reason::Check { .. }) => DropReason::Icrc,
            (_, Reason::Length { .. }) => DropReason::PacketLength,
            _ => DropReason::Malformed,
        }
    }
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
