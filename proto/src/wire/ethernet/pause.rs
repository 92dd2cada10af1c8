//! PAUSE: the whole link shall be silent for a while, or may speak again.

use crate::wire::header::header;

header! {
    /// What follows the opcode of a PAUSE frame.
    ///
    /// Source: IEEE 802.3, 31B.2.
    pub struct Pause[2] "PAUSE" {
        /// How long; 0 ends an earlier pause.
        ///
        /// Units: quanta of 512 bit times.
        pub time: u16 = 0..16,
    }
}

impl Pause {
    /// The opcode of MAC control that announces it. Source: IEEE 802.3, 31A.
    pub const OPCODE: u16 = 0x0001;
}
