//! ARP: the MAC address of an IPv4 neighbour.

use crate::ids::MacAddress;
use crate::wire::ethernet::ethertype;
use crate::wire::header::{fields, header};
use core::net::Ipv4Addr;

/// What an ARP packet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArpOperation {
    /// Asks for the hardware address of the target.
    Request,
    /// Answers a request.
    Reply,
    /// Another code, kept.
    Unknown(u16),
}

fields! {
    ArpOperation:
        |bits: u16| match bits {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            other => ArpOperation::Unknown(other),
        },
        |value| match value {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
            ArpOperation::Unknown(code) => code,
        };
}

header! {
    /// Address Resolution Protocol for IPv4 over Ethernet.
    ///
    /// Source: RFC 826.
    pub struct Arp[28] "ARP" {
        /// Kind of link; 1 is Ethernet.
        pub hardware_type: u16 = 0..16,
        /// Kind of address: the EtherType of IPv4.
        pub protocol_type: u16 = 16..32,
        /// Octets of a hardware address: 6.
        pub hardware_length: u8 = 32..40,
        /// Octets of a protocol address: 4.
        pub protocol_length: u8 = 40..48,
        /// What the packet does.
        pub operation: ArpOperation = 48..64,
        /// The sender's MAC address.
        pub sender_hardware: MacAddress = 64..112,
        /// The sender's IPv4 address; 0.0.0.0 in a probe (RFC 5227).
        pub sender_protocol: Ipv4Addr = 112..144,
        /// The MAC address of the target; zero in a request.
        pub target_hardware: MacAddress = 144..192,
        /// The IPv4 address of the target.
        pub target_protocol: Ipv4Addr = 192..224,
    }
}

impl Arp {
    /// The EtherType of ARP.
    pub const ETHERTYPE: u16 = ethertype::ARP;

    /// A packet for IPv4 over Ethernet.
    pub const fn new(
        operation: ArpOperation,
        sender: (MacAddress, Ipv4Addr),
        target: (MacAddress, Ipv4Addr),
    ) -> Arp {
        Arp {
            hardware_type: 1,
            protocol_type: ethertype::IPV4,
            hardware_length: 6,
            protocol_length: 4,
            operation,
            sender_hardware: sender.0,
            sender_protocol: sender.1,
            target_hardware: target.0,
            target_protocol: target.1,
        }
    }

    /// Whether kinds and lengths are those of IPv4 over Ethernet, so that the addresses have a meaning.
    pub const fn is_ipv4_over_ethernet(&self) -> bool {
        self.hardware_type == 1
            && self.protocol_type == ethertype::IPV4
            && self.hardware_length == 6
            && self.protocol_length == 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::error::ParseError;
    use proptest::prelude::*;

    #[test]
    fn a_request_has_the_octets_that_linux_sends() {
        let sender = MacAddress::from_number(0x0200_0000_0001);
        let zero = MacAddress::from_number(0);
        let addresses = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];
        let request = Arp::new(ArpOperation::Request, (sender, addresses[0]), (zero, addresses[1]));
        let octets = [
            0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198, 18, 0,
            2,
        ];
        assert_eq!(request.to_octets(), octets);
        assert!(request.is_ipv4_over_ethernet());
        assert!(!Arp { protocol_type: 0x86dd, ..request }.is_ipv4_over_ethernet());
    }

    #[test]
    fn every_short_length_is_refused() {
        for present in 0..Arp::LEN {
            let refused = Err(ParseError::short("ARP", 0, 28, present));
            assert_eq!(Arp::parse(&[1; 28][..present]), refused);
        }
    }

    proptest! {
        #[test]
        fn any_octets_round_trip(octets: [u8; Arp::LEN]) {
            prop_assert_eq!(Arp::parse(&octets)?.to_octets(), octets);
        }
    }
}
