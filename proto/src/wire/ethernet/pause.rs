//! PAUSE: the whole link shall be silent for a while, or may speak again.

use crate::wire::big_endian::u16_at;
use crate::wire::header::header_pair;

/// What follows the opcode of a PAUSE frame.
///
/// Source: IEEE 802.3, 31B.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// How long; 0 ends an earlier pause.
    ///
    /// Units: quanta of 512 bit times.
    pub time: u16,
}

header_pair!(PauseView views Pause, "PAUSE", 2);

impl Pause {
    /// The opcode of MAC control that announces it. Source: IEEE 802.3, 31A.
    pub const OPCODE: u16 = 0x0001;

    /// The octets behind the opcode.
    pub fn to_octets(&self) -> [u8; Pause::LEN] {
        self.time.to_be_bytes()
    }
}

impl<T: AsRef<[u8]>> PauseView<T> {
    /// How long, in quanta.
    pub fn time(&self) -> u16 {
        u16_at(self.octets(), 0..2)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Pause {
        Pause { time: self.time() }
    }
}
