//! MAC control: PAUSE and PFC, frames between the two ends of a link.
//!
//! ```text
//! | 01-80-C2-00-00-01 | source | 88 08 | opcode 16 | parameters | zeros up to 60 octets |
//! ```
//!
//! They are never tagged, never forwarded and never flow controlled. Source: IEEE 802.3, 31.

use crate::ids::MacAddress;
use crate::wire::error::{ParseError, Reason};
use crate::wire::ethernet::envelope::{Envelope, LEAST};
use crate::wire::ethernet::ethertype;
use crate::wire::ethernet::header::EthernetHeader;
use crate::wire::ethernet::pause::Pause;
use crate::wire::ethernet::pfc::Pfc;
use crate::wire::header::get;

/// The request of a MAC control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacControl {
    /// PAUSE: stop the whole link, or release it.
    Pause(Pause),
    /// PFC: stop single priorities, or release them.
    Pfc(Pfc),
    /// Any other opcode; the frame has no effect and is not an error.
    Unknown(u16),
}

/// Offset of the opcode; the parameters follow it.
const OPCODE: usize = EthernetHeader::LEN;
const PARAMETERS: usize = OPCODE + 2;

impl MacControl {
    /// Name of the opcode and the headers before it in [`ParseError::layer`].
    pub const LAYER: &'static str = "MAC control";

    /// Length of the frame in octets, without FCS.
    pub const FRAME_LEN: usize = LEAST;

    /// True if the frame has the EtherType of MAC control.
    pub fn is_announced(octets: &[u8]) -> bool {
        octets.get(12..14) == Some(&ethertype::MAC_CONTROL.to_be_bytes())
    }

    /// Reads a frame, with or without its padding.
    ///
    /// # Errors
    /// In layer "MAC control": another EtherType, or too short for an opcode. In layers "PAUSE" and "PFC":
    /// too short for the parameters.
    pub fn parse(octets: &[u8]) -> Result<MacControl, ParseError> {
        let within = |error: ParseError| error.within(PARAMETERS);
        if !MacControl::is_announced(octets) {
            return Err(ParseError::new(
                MacControl::LAYER,
                12,
                Reason::Illegal("the EtherType is not 0x8808"),
            ));
        }
        let Some(parameters) = octets.get(PARAMETERS..) else {
            return Err(ParseError::short(MacControl::LAYER, OPCODE, 2, octets.len() - OPCODE));
        };
        match get::<u16>(octets, OPCODE * 8, PARAMETERS * 8) {
            Pause::OPCODE => Pause::parse(parameters).map(MacControl::Pause).map_err(within),
            Pfc::OPCODE => Pfc::parse(parameters).map(MacControl::Pfc).map_err(within),
            opcode => Ok(MacControl::Unknown(opcode)),
        }
    }

    /// The frame as a port sends it, without FCS.
    pub fn to_octets(&self, source: MacAddress) -> [u8; MacControl::FRAME_LEN] {
        let mut octets = [0; MacControl::FRAME_LEN];
        Envelope::untagged(MacAddress::MAC_CONTROL, source, ethertype::MAC_CONTROL)
            .emit(&mut octets);
        let opcode = match self {
            MacControl::Pause(pause) => {
                pause.emit(&mut octets[PARAMETERS..]);
                Pause::OPCODE
            }
            MacControl::Pfc(pfc) => {
                pfc.emit(&mut octets[PARAMETERS..]);
                Pfc::OPCODE
            }
            MacControl::Unknown(opcode) => *opcode,
        };
        octets[OPCODE..PARAMETERS].copy_from_slice(&opcode.to_be_bytes());
        octets
    }
}

#[cfg(test)]
mod tests;
