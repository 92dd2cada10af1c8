//! The congestion notification message: a switch tells a sender how full one of its queues is.
//!
//! It goes to whoever sent the frame that was sampled, with that frame's CN-TAG in front if it had one.

use crate::ids::Priority;
use crate::wire::big_endian::{u16_at, u64_at};
use crate::wire::error::{ParseError, Reason};
use crate::wire::ethernet::mac::MacAddress;
use crate::wire::header::header_pair;

/// What follows the message's EtherType, as far as the first octets of the sampled frame.
///
/// ```text
/// | version 4 | reserved 6 | quantized feedback 6 | CPID 64 | Qoffset 16 | Qdelta 16
/// | encapsulated priority 3 | reserved 13 | encapsulated destination 48 | MSDU length 16 | MSDU …
/// ```
///
/// Source: IEEE 802.1Q, 33.3 and 33.4; the order and widths also in HPE's FlexFabric manuals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cnm {
    /// [`Cnm::VERSION`]; four bits.
    pub version: u8,
    /// Sent as zero and ignored by a receiver; six bits.
    pub reserved: u8,
    /// How strong the congestion is: 1 to 63, in 63rds of the strongest; six bits.
    pub quantized_feedback: u8,
    /// The congestion point: unique in its domain.
    pub cpid: u64,
    /// Set point minus queue; negative where the queue is too long.
    ///
    /// Units: 64 octets.
    pub q_offset: i16,
    /// Queue minus queue at the sample before.
    ///
    /// Units: 64 octets.
    pub q_delta: i16,
    /// The sampled frame's priority.
    pub encapsulated_priority: Priority,
    /// Sent as zero; 13 bits.
    pub encapsulated_reserved: u16,
    /// To whom the sampled frame was going.
    pub encapsulated_destination: MacAddress,
    /// Octets of the sampled frame that follow, counted behind its tags.
    pub msdu_length: u16,
}

mod field {
    use std::ops::Range;
    pub const CONTROL: Range<usize> = 0..2;
    pub const CPID: Range<usize> = 2..10;
    pub const Q_OFFSET: Range<usize> = 10..12;
    pub const Q_DELTA: Range<usize> = 12..14;
    pub const PRIORITY: Range<usize> = 14..16;
    pub const DESTINATION: Range<usize> = 16..22;
    pub const MSDU_LENGTH: Range<usize> = 22..24;
}

header_pair!(CnmView views Cnm, "CNM", 24);

impl Cnm {
    /// The only version there is.
    pub const VERSION: u8 = 0;

    /// The largest [`Cnm::quantized_feedback`].
    pub const FEEDBACK_MAX: u8 = 63;

    /// Octets of the sampled frame that a message holds at most.
    pub const MSDU_MAX: usize = 64;

    /// Reads the message that `body`, padded or not, begins with, and the octets it holds of the
    /// sampled frame.
    ///
    /// # Errors
    /// In layer "CNM": fewer octets than it has or says it has, a version that is not
    /// [`Cnm::VERSION`] (33.4.1: to be discarded), more of the sampled frame than
    /// [`Cnm::MSDU_MAX`].
    pub fn parse_message(body: &[u8]) -> Result<(Cnm, &[u8]), ParseError> {
        let cnm = Cnm::parse(body)?;
        let refuse = |reason| Err(ParseError { layer: Cnm::LAYER, offset: 0, reason });
        if cnm.version != Cnm::VERSION {
            return refuse(Reason::Version(cnm.version));
        }
        let (said, rest) = (usize::from(cnm.msdu_length), &body[Cnm::LEN..]);
        if said > Cnm::MSDU_MAX {
            return refuse(Reason::Illegal("the MSDU length is above 64"));
        }
        match rest.get(..said) {
            Some(msdu) => Ok((cnm, msdu)),
            None => refuse(Reason::Length { said, present: rest.len() }),
        }
    }

    /// The octets before the sampled frame's.
    pub fn to_octets(&self) -> [u8; Cnm::LEN] {
        let control = u16::from(self.version) << 12
            | u16::from(self.reserved & 0x3f) << 6
            | u16::from(self.quantized_feedback & 0x3f);
        let priority =
            u16::from(self.encapsulated_priority.get()) << 13 | self.encapsulated_reserved & 0x1fff;
        let mut octets = [0; Cnm::LEN];
        octets[field::CONTROL].copy_from_slice(&control.to_be_bytes());
        octets[field::CPID].copy_from_slice(&self.cpid.to_be_bytes());
        octets[field::Q_OFFSET].copy_from_slice(&self.q_offset.to_be_bytes());
        octets[field::Q_DELTA].copy_from_slice(&self.q_delta.to_be_bytes());
        octets[field::PRIORITY].copy_from_slice(&priority.to_be_bytes());
        octets[field::DESTINATION].copy_from_slice(&self.encapsulated_destination.octets());
        octets[field::MSDU_LENGTH].copy_from_slice(&self.msdu_length.to_be_bytes());
        octets
    }
}

impl<T: AsRef<[u8]>> CnmView<T> {
    fn control(&self) -> u16 {
        u16_at(self.octets(), field::CONTROL)
    }

    /// Which version; four bits.
    pub fn version(&self) -> u8 {
        (self.control() >> 12) as u8
    }

    /// What nobody may set yet; six bits.
    pub fn reserved(&self) -> u8 {
        (self.control() >> 6) as u8 & 0x3f
    }

    /// How strong the congestion is; six bits.
    pub fn quantized_feedback(&self) -> u8 {
        self.control() as u8 & 0x3f
    }

    /// The congestion point.
    pub fn cpid(&self) -> u64 {
        u64_at(self.octets(), field::CPID)
    }

    /// Set point minus queue, in units of 64 octets.
    pub fn q_offset(&self) -> i16 {
        u16_at(self.octets(), field::Q_OFFSET).cast_signed()
    }

    /// Queue minus queue at the sample before, in units of 64 octets.
    pub fn q_delta(&self) -> i16 {
        u16_at(self.octets(), field::Q_DELTA).cast_signed()
    }

    /// The sampled frame's priority.
    pub fn encapsulated_priority(&self) -> Priority {
        Priority::truncate((u16_at(self.octets(), field::PRIORITY) >> 13) as u8)
    }

    /// The 13 bits behind the priority.
    pub fn encapsulated_reserved(&self) -> u16 {
        u16_at(self.octets(), field::PRIORITY) & 0x1fff
    }

    /// To whom the sampled frame was going.
    pub fn encapsulated_destination(&self) -> MacAddress {
        let octets = &self.octets()[field::DESTINATION];
        MacAddress::new(octets.try_into().expect("an address has six octets"))
    }

    /// Octets of the sampled frame that follow.
    pub fn msdu_length(&self) -> u16 {
        u16_at(self.octets(), field::MSDU_LENGTH)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Cnm {
        Cnm {
            version: self.version(),
            reserved: self.reserved(),
            quantized_feedback: self.quantized_feedback(),
            cpid: self.cpid(),
            q_offset: self.q_offset(),
            q_delta: self.q_delta(),
            encapsulated_priority: self.encapsulated_priority(),
            encapsulated_reserved: self.encapsulated_reserved(),
            encapsulated_destination: self.encapsulated_destination(),
            msdu_length: self.msdu_length(),
        }
    }
}

#[cfg(test)]
mod tests;
