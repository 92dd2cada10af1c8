//! PFC: stops single priorities of the peer for a time, or releases them.

use crate::ids::Priority;
use crate::wire::header::{Field, header};

header! {
    /// The parameters of a PFC frame, after the opcode.
    ///
    /// ```text
    /// | reserved 8 | class-enable vector 8 | eight times of 16, priority 0 first |
    /// ```
    ///
    /// The frame does not change a priority whose bit is clear. A set bit with time 0 (XON) releases
    /// the priority. Source: IEEE 802.3, 31D.2; IEEE 802.1Q, 36.
    #[derive(Default)]
    pub struct Pfc[18] "PFC" {
        /// The vector's high octet, sent as zero and ignored by a receiver.
        pub reserved: u8 = 0..8,
        /// Class-enable vector: bit n enables the time of priority n.
        pub enabled: u8 = 8..16,
        /// The pause of each priority.
        ///
        /// Units: quanta of 512 bit times.
        pub times: [u16; Pfc::PRIORITIES] = 16..144,
    }
}

impl Field for [u16; Pfc::PRIORITIES] {
    #[inline(always)]
    fn from_bits(bits: u128) -> Self {
        std::array::from_fn(|priority| (bits >> (112 - 16 * priority)) as u16)
    }

    #[inline(always)]
    fn to_bits(self) -> u128 {
        self.iter().fold(0, |bits, time| bits << 16 | u128::from(*time))
    }
}

impl Pfc {
    /// The MAC control opcode of PFC. Source: IEEE 802.3, 31A.
    pub const OPCODE: u16 = 0x0101;

    /// The number of priorities in a frame.
    pub const PRIORITIES: usize = 8;

    /// Adds a pause of `time` quanta for `priority`; 0 releases it.
    pub fn with(mut self, priority: Priority, time: u16) -> Pfc {
        self.enabled |= 1 << priority.get();
        self.times[priority.index()] = time;
        self
    }

    /// The pause of `priority` in quanta; `None` if its bit is clear.
    pub fn time(&self, priority: Priority) -> Option<u16> {
        let enabled = self.enabled >> priority.get() & 1 == 1;
        enabled.then(|| self.times[priority.index()])
    }
}
