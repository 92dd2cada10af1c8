//! PFC: some priorities of the link shall be silent for a while, or may speak again.

use crate::ids::Priority;
use crate::wire::big_endian::u16_at;
use crate::wire::header::header_pair;

/// What follows the opcode of a PFC frame.
///
/// ```text
/// | reserved 8 | class-enable vector 8 | eight times of 16, priority 0 first |
/// ```
///
/// A priority whose bit is clear stays as it is, whatever its time says; one whose bit is set and
/// whose time is 0 may speak again. Source: IEEE 802.3, 31D.2; IEEE 802.1Q, 36.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pfc {
    /// The vector's high octet, sent as zero and ignored by a receiver.
    pub reserved: u8,
    /// Bit n is that of priority n.
    pub enabled: u8,
    /// By priority.
    ///
    /// Units: quanta of 512 bit times.
    pub times: [u16; Pfc::PRIORITIES],
}

mod field {
    use std::ops::Range;
    pub const RESERVED: usize = 0;
    pub const ENABLED: usize = 1;
    pub const TIMES: Range<usize> = 2..18;
}

header_pair!(PfcView views Pfc, "PFC", 18);

impl Pfc {
    /// The opcode of MAC control that announces it. Source: IEEE 802.3, 31A.
    pub const OPCODE: u16 = 0x0101;

    /// How many priorities a frame speaks of.
    pub const PRIORITIES: usize = 8;

    /// The same, and `priority` shall be silent for `time` quanta; with 0 it may speak again.
    pub fn with(mut self, priority: Priority, time: u16) -> Pfc {
        self.enabled |= 1 << priority.get();
        self.times[priority.index()] = time;
        self
    }

    /// What the frame says to `priority`, in quanta; `None` if nothing.
    pub fn time(&self, priority: Priority) -> Option<u16> {
        let speaks = self.enabled >> priority.get() & 1 == 1;
        speaks.then(|| self.times[priority.index()])
    }

    /// The octets behind the opcode.
    pub fn to_octets(&self) -> [u8; Pfc::LEN] {
        let mut octets = [0; Pfc::LEN];
        octets[field::RESERVED] = self.reserved;
        octets[field::ENABLED] = self.enabled;
        let (places, _) = octets[field::TIMES].as_chunks_mut();
        for (place, time) in places.iter_mut().zip(self.times) {
            *place = time.to_be_bytes();
        }
        octets
    }
}

impl<T: AsRef<[u8]>> PfcView<T> {
    /// The vector's high octet.
    pub fn reserved(&self) -> u8 {
        self.octets()[field::RESERVED]
    }

    /// The vector, a bit a priority.
    pub fn enabled(&self) -> u8 {
        self.octets()[field::ENABLED]
    }

    /// The time of `priority` in quanta, whether its bit is set or not.
    pub fn time(&self, priority: Priority) -> u16 {
        let at = field::TIMES.start + 2 * priority.index();
        u16_at(self.octets(), at..at + 2)
    }

    /// All fields.
    pub fn to_owned_header(&self) -> Pfc {
        let times = std::array::from_fn(|index| self.time(Priority::truncate(index as u8)));
        Pfc { reserved: self.reserved(), enabled: self.enabled(), times }
    }
}
