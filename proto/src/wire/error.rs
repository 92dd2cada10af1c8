//! Parse errors: the layer, its offset, and the fault.

use crate::counters::DropReason;

/// Error of parsing octets as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer} at octet {offset}: {reason}")]
pub struct ParseError {
    /// The header or trailer with the fault ("LRH", "BTH", "VCRC").
    pub layer: &'static str,
    /// Offset of the layer from the first octet of the frame.
    pub offset: usize,
    /// The fault.
    pub reason: Reason,
}

impl ParseError {
    /// Error for the `layer` at `offset`.
    pub const fn new(layer: &'static str, offset: usize, reason: Reason) -> ParseError {
        ParseError { layer, offset, reason }
    }

    /// Compares the check in `layer` with the value computed here.
    ///
    /// # Errors
    /// If they differ.
    #[inline]
    pub fn check(
        layer: &'static str,
        offset: usize,
        computed: impl Into<u32>,
        present: impl Into<u32>,
    ) -> Result<(), ParseError> {
        let (computed, present) = (computed.into(), present.into());
        if computed == present {
            return Ok(());
        }
        Err(ParseError::new(layer, offset, Reason::Check { computed, present }))
    }

    /// Error for a `layer` with too few octets.
    pub const fn short(
        layer: &'static str,
        offset: usize,
        needed: usize,
        present: usize,
    ) -> ParseError {
        ParseError { layer, offset, reason: Reason::Short { needed, present } }
    }

    /// Error for a length in `layer` that disagrees with the octets.
    pub const fn length(
        layer: &'static str,
        offset: usize,
        declared: usize,
        present: usize,
    ) -> ParseError {
        ParseError { layer, offset, reason: Reason::Length { declared, present } }
    }

    /// The same error for a frame in which the header begins at `offset`.
    pub const fn within(self, offset: usize) -> ParseError {
        ParseError { offset: self.offset + offset, ..self }
    }

    /// The drop reason under which a device counts the frame.
    ///
    /// Link packets and MAC control frames never leave their link, so they have separate reasons, which the
    /// end-to-end frame balance excludes.
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
            ("LRH", Reason::Version(_)) => DropReason::LinkVersion,
            ("BTH", Reason::Version(_)) => DropReason::TransportVersion,
            ("GRH", Reason::Version(_) | Reason::Illegal(_)) => DropReason::GlobalHeader,
            _ => DropReason::Malformed,
        }
    }
}

/// The fault.
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
    #[error("declares {declared} octets, {present} are present")]
    Length {
        /// Length in the field, in octets.
        declared: usize,
        /// Octets present.
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
