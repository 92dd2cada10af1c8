//! Bounded numbers of the standards: constructors refuse values that do not fit the field.

mod mac;

pub use mac::{MacAddress, NoMacAddress};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;

/// A number that does not fit its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, at most {max} fits")]
pub struct RangeError {
    /// The field's name in the standard.
    pub field: &'static str,
    /// The refused value.
    pub value: u64,
    /// The largest value that the field holds.
    pub max: u64,
}

/// What every number has: its plain value, and its text.
macro_rules! number {
    ($name:ident, $raw:ty) => {
        impl $name {
            /// The plain number.
            pub const fn get(self) -> $raw {
                self.0
            }
        }

        impl From<$name> for $raw {
            fn from(value: $name) -> $raw {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! bounded {
    ($($(#[$doc:meta])* $name:ident: $raw:ty, $text:literal, $field:literal, $max:expr;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = $text, into = $text)]
        pub struct $name($raw);

        number!($name, $raw);

        impl $name {
            /// The largest value.
            pub const MAX: $raw = $max;

            /// Checks that `value` fits the field.
            ///
            /// # Errors
            /// If it is larger than [`Self::MAX`].
            pub const fn new(value: $raw) -> Result<Self, RangeError> {
                if value > $max {
                    Err(RangeError { field: $field, value: value as u64, max: $max as u64 })
                } else {
                    Ok($name(value))
                }
            }

            /// Takes the low bits of `value` that fit the field and drops the others.
            pub const fn truncate(value: $raw) -> Self {
                $name(value & $max)
            }

            /// Index into a table with an entry for each value.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl TryFrom<$raw> for $name {
            type Error = RangeError;
            fn try_from(value: $raw) -> Result<Self, RangeError> {
                $name::new(value)
            }
        })*
    };
}

bounded! {
    /// Virtual lane, 0 to 15; 15 carries subnet management only. Source: IBTA Vol 1, 7.6.
    VirtualLane: u8, "u8", "virtual lane", 15;
    /// Service level, 0 to 15. Source: IBTA Vol 1, 7.6.5.
    ServiceLevel: u8, "u8", "service level", 15;
    /// Queue pair number, 24 bits. Source: IBTA Vol 1, 9.2.
    QueuePairNumber: u32, "u32", "queue pair number", 0x00ff_ffff;
    /// Packet sequence number, 24 bits, wrapping. Source: IBTA Vol 1, 9.2.
    Psn: u32, "u32", "packet sequence number", 0x00ff_ffff;
    /// Priority of an Ethernet frame, 0 to 7. Source: IEEE 802.1Q, 9.6 (PCP).
    Priority: u8, "u8", "priority", 7;
    /// VLAN identifier, 12 bits; 0 marks a priority tag, which names no VLAN. Source: IEEE 802.1Q, 9.6.
    VlanId: u16, "u16", "VLAN identifier", 0xfff;
    /// Differentiated services code point, 6 bits. Source: RFC 2474.
    Dscp: u8, "u8", "DSCP", 63;
}

/// ECN field: the two bits after the DSCP. Source: RFC 3168, 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not-ECT: the endpoints do not support ECN. Frames without an IP header count as Not-ECT.
    #[default]
    NotCapable = 0b00,
    /// ECT(1): the endpoints support ECN.
    Capable1 = 0b01,
    /// ECT(0): the endpoints support ECN. RoCE sends this value.
    Capable0 = 0b10,
    /// CE: a switch on the path has marked congestion.
    CongestionExperienced = 0b11,
}

impl Ecn {
    /// The ECN field with the low two bits of `bits`.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::Capable1,
            0b10 => Ecn::Capable0,
            _ => Ecn::CongestionExperienced,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// True for every value except Not-ECT.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotCapable)
    }
}

impl VirtualLane {
    /// VL15: subnet management packets, without link flow control (IBTA Vol 1, 7.9).
    pub const MANAGEMENT: VirtualLane = VirtualLane(15);
    /// Data lane 0.
    pub const ZERO: VirtualLane = VirtualLane(0);
}

impl Psn {
    /// The next sequence number, modulo 2^24.
    pub const fn next(self) -> Psn {
        self.plus(1)
    }

    /// This number plus `n`, modulo 2^24.
    pub const fn plus(self, n: u32) -> Psn {
        Psn(self.0.wrapping_add(n) & Psn::MAX)
    }

    /// Signed distance from `other` to this number, within ±2^23: positive if this number is newer, negative if
    /// it is older. Source: IBTA Vol 1, 9.7.1 (half of the PSN space is a duplicate).
    pub const fn distance_from(self, other: Psn) -> i32 {
        let ahead = self.0.wrapping_sub(other.0) & Psn::MAX;
        if ahead < 1 << 23 { ahead as i32 } else { ahead as i32 - (1 << 24) }
    }
}

impl QueuePairNumber {
    /// The queue pair that serves `peer` in connection class `class`: the peer's LID in the low
    /// sixteen bits, the class above. Both ends compute the same
    /// number, so no table of pairs is needed. The result is never 0 or 1 (management).
    pub const fn planned(class: u8, peer: Lid) -> QueuePairNumber {
        QueuePairNumber(((class as u32 + 1) << 16 | peer.0 as u32) & Self::MAX)
    }

    /// The class and peer of [`Self::planned`]; `None` for numbers outside the plan.
    pub const fn plan(self) -> Option<(u8, Lid)> {
        match self.0 >> 16 {
            0 => None,
            class => Some((class as u8 - 1, Lid(self.0 as u16))),
        }
    }
}

/// Local identifier: the address of a port inside a subnet. Source: IBTA Vol 1, 4.1.3.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Lid(u16);

number!(Lid, u16);

impl Lid {
    /// Permissive LID 0xFFFF: every port accepts it as its own address (IBTA Vol 1, 4.1.3).
    pub const PERMISSIVE: Lid = Lid(0xffff);

    /// The LID `value`; every 16-bit value is permitted.
    pub const fn new(value: u16) -> Lid {
        Lid(value)
    }

    /// True for unicast LIDs, 0x0001 to 0xBFFF.
    pub const fn is_unicast(self) -> bool {
        self.0 >= 1 && self.0 <= 0xbfff
    }

    /// True for multicast LIDs, 0xC000 to 0xFFFE.
    pub const fn is_multicast(self) -> bool {
        self.0 >= 0xc000 && self.0 != 0xffff
    }
}

/// The address of a port on its link: a LID on InfiniBand, a MAC address on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// InfiniBand.
    Lid(Lid),
    /// Ethernet.
    Mac(MacAddress),
}

impl Address {
    /// The LID, or the 48 bits of the MAC address, as one number.
    pub const fn number(self) -> u64 {
        match self {
            Address::Lid(lid) => lid.get() as u64,
            Address::Mac(mac) => mac.number(),
        }
    }
}

impl Default for Address {
    fn default() -> Address {
        Address::Lid(Lid::default())
    }
}

impl From<Lid> for Address {
    fn from(lid: Lid) -> Address {
        Address::Lid(lid)
    }
}

impl From<MacAddress> for Address {
    fn from(mac: MacAddress) -> Address {
        Address::Mac(mac)
    }
}

/// CPID: identifies the switch queue that sends a congestion notification. Its eight octets are the MAC
/// address of the port followed by the priority. Never zero.
///
/// Source: IEEE 802.1Q, 33.4.4, which leaves the layout to the congestion point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CongestionPointId(NonZeroU64);

impl CongestionPointId {
    /// The identifier with these eight octets, as one number; `None` for zero, which identifies no congestion point.
    pub const fn new(number: u64) -> Option<CongestionPointId> {
        match NonZeroU64::new(number) {
            Some(number) => Some(CongestionPointId(number)),
            None => None,
        }
    }

    /// The identifier of `priority` at the port whose MAC address has the number `mac`.
    pub const fn of_port(mac: u64, priority: Priority) -> Option<CongestionPointId> {
        CongestionPointId::new(mac << 16 | priority.0 as u64)
    }

    /// The octets as one number, first transmitted octet most significant.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for CongestionPointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Port number of a device, 1 to 254, as on the faceplate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct PortNumber(u8);

number!(PortNumber, u8);

impl PortNumber {
    /// Port `number`. Port 0 is the management port of a switch and has no cable; 255 is reserved.
    ///
    /// # Errors
    /// If `number` is 0 or 255.
    pub const fn new(number: u8) -> Result<PortNumber, RangeError> {
        if number == 0 || number == 255 {
            Err(RangeError { field: "port number", value: number as u64, max: 254 })
        } else {
            Ok(PortNumber(number))
        }
    }

    /// The port whose zero-based index is `index`.
    ///
    /// # Panics
    /// If `index` is above 253.
    pub const fn from_index(index: usize) -> PortNumber {
        assert!(index < 254, "a device has at most 254 ports");
        PortNumber(index as u8 + 1)
    }

    /// Zero-based index for tables with one entry for each port.
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }
}

impl TryFrom<u8> for PortNumber {
    type Error = RangeError;
    fn try_from(value: u8) -> Result<PortNumber, RangeError> {
        PortNumber::new(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psn_distance_wraps() {
        let last = Psn::truncate(Psn::MAX);
        assert_eq!(last.next(), Psn::default());
        assert_eq!(last.next().distance_from(last), 1);
        assert_eq!(last.distance_from(last.next()), -1);
        assert_eq!(Psn::truncate(1 << 23).distance_from(Psn::default()), -(1 << 23));
    }

    #[test]
    fn planned_queue_pair_numbers_encode_class_and_peer() {
        let qpn = QueuePairNumber::planned(2, Lid::new(31));
        assert_eq!(qpn.get(), 0x03_001f);
        assert_eq!(qpn.plan(), Some((2, Lid::new(31))));
        assert_eq!(QueuePairNumber::truncate(1).plan(), None);
    }

    #[test]
    fn a_congestion_point_id_encodes_port_and_priority_and_is_never_zero() {
        let priority = Priority::truncate(3);
        let point = CongestionPointId::of_port(0x0200_0500_0209, priority);
        assert_eq!(point.map(CongestionPointId::get), Some(0x0200_0500_0209_0003));
        assert_eq!(point.map(|id| id.to_string()).as_deref(), Some("0200050002090003"));
        assert_eq!(CongestionPointId::new(0), None);
        assert_eq!(size_of::<Option<CongestionPointId>>(), 8);
    }

    #[test]
    fn constructors_refuse_values_out_of_range() {
        assert!(VirtualLane::new(16).is_err());
        assert!(Psn::new(1 << 24).is_err());
        assert!(PortNumber::new(0).is_err());
        assert!(Priority::new(8).is_err() && Dscp::new(64).is_err() && VlanId::new(4096).is_err());
        assert_eq!(PortNumber::from_index(0).get(), 1);
    }
}
