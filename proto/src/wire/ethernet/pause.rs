//! PAUSE: stops all transmission of the peer for a time, or releases it.

use crate::wire::header::header;

header! {
    /// The parameters of a PAUSE frame, after the opcode.
    ///
    /// Source: IEEE 802.3, 31B.2.
    pub struct Pause[2] "PAUSE" {
        /// The length of the pause; 0 (XON) ends an earlier one.
        ///
        /// Units: quanta of 512 bit times.
        pub time: u16 = 0..16,
    }
}

impl Pause {
    /// The MAC control opcode of PAUSE. Source: IEEE 802.3, 31A.
    pub const OPCODE: u16 = 0x0001;
}
