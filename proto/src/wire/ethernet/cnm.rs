//! The congestion notification message (CNM): the state of a congestion point, sent to the source.
//!
//! The switch sends it to the source of the sampled frame. It carries the frame's CN-TAG, if there was one.

use crate::ids::{MacAddress, Priority};
use crate::wire::error::{ParseError, Reason};
use crate::wire::header::header;

header! {
    /// The fixed part of a CNM: from the octet after its EtherType to the MSDU length.
    ///
    /// ```text
    /// | version 4 | reserved 6 | quantized feedback 6 | CPID 64 | Qoffset 16 | Qdelta 16
    /// | encapsulated priority 3 | reserved 13 | encapsulated destination 48 | MSDU length 16 | MSDU …
    /// ```
    ///
    /// Source: IEEE 802.1Q, 33.3 and 33.4; the order and widths also in HPE's FlexFabric manuals.
    #[derive(Default)]
    pub struct Cnm[24] "CNM" {
        /// [`Cnm::VERSION`]; four bits.
        pub version: u8 = 0..4,
        /// Sent as zero and ignored by a receiver; six bits.
        pub reserved: u8 = 4..10,
        /// Quantized feedback, six bits: 1 to 63, where 63 is the strongest congestion.
        pub quantized_feedback: u8 = 10..16,
        /// CPID of the congestion point, unique in its domain.
        pub cpid: u64 = 16..80,
        /// Set point minus queue length; negative if the queue is too long.
        ///
        /// Units: 64 octets.
        pub q_offset: i16 = 80..96,
        /// Queue length minus queue length at the previous sample.
        ///
        /// Units: 64 octets.
        pub q_delta: i16 = 96..112,
        /// The sampled frame's priority.
        pub encapsulated_priority: Priority = 112..115,
        /// Sent as zero; 13 bits.
        pub encapsulated_reserved: u16 = 115..128,
        /// The sampled frame's destination address.
        pub encapsulated_destination: MacAddress = 128..176,
        /// Number of octets of the sampled frame that follow, counted from after its tags.
        pub msdu_length: u16 = 176..192,
    }
}

impl Cnm {
    /// The only defined version.
    pub const VERSION: u8 = 0;

    /// The largest [`Cnm::quantized_feedback`].
    pub const FEEDBACK_MAX: u8 = 63;

    /// Maximum number of octets of the sampled frame in a message.
    pub const MSDU_MAX: usize = 64;

    /// Reads the message at the start of `body`, which may be padded, and returns it with its octets of the
    /// sampled frame.
    ///
    /// # Errors
    /// In layer "CNM": too few octets for the header or for the MSDU length, a version other than
    /// [`Cnm::VERSION`] (33.4.1: discard), or an MSDU length above [`Cnm::MSDU_MAX`].
    pub fn parse_message(body: &[u8]) -> Result<(Cnm, &[u8]), ParseError> {
        let cnm = Cnm::parse(body)?;
        let refuse = |reason| Err(ParseError::new(Cnm::LAYER, 0, reason));
        if cnm.version != Cnm::VERSION {
            return refuse(Reason::Version(cnm.version));
        }
        let (size, rest) = (usize::from(cnm.msdu_length), &body[Cnm::LEN..]);
        if size > Cnm::MSDU_MAX {
            return refuse(Reason::Illegal("the MSDU length is above 64"));
        }
        let msdu = rest.get(..size).ok_or(ParseError::length(Cnm::LAYER, 0, size, rest.len()))?;
        Ok((cnm, msdu))
    }
}

#[cfg(test)]
mod tests;
