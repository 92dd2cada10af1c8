//! The numbering plan of an Ethernet fabric: addresses of each adapter, and the adapter of each address.
//!
//! Devices identify an adapter by a number ([`Lid`]). On the wire, number n with octets hh and ll is
//!
//! ```text
//! MAC   02:00:00:00:hh:ll   locally administered, one port   IEEE 802, 8.4
//! IPv4  198.18.hh.ll        for tests of devices             RFC 2544, C.2.2
//! IPv6  2001:db8::n         for documentation                RFC 3849
//! ```
//!
//! The ports of switches are 02:00:pp:00:hh:ll, which name the source of their control
//! frames. Addresses outside the plan are foreign, which is not an error. Source: as in the last column.

use crate::ids::{Address, Lid, MacAddress, PortNumber};
use core::net::{Ipv4Addr, Ipv6Addr};

/// Prefix of the MAC addresses of all adapters; the other bits are zero.
const MAC_BASE: u64 = 0x0200_0000_0000;

/// Prefix of the IPv6 addresses of all adapters; the other bits are zero.
const IPV6_BASE: u128 = 0x2001_0db8 << 96;

/// The MAC address of adapter `number`.
pub const fn mac(number: Lid) -> MacAddress {
    MacAddress::from_number(MAC_BASE | number.get() as u64)
}

/// The MAC address of `port` of switch `number`. It differs from every adapter's address: an adapter's third
/// octet is zero, and ports count from 1.
pub const fn port_mac(number: Lid, port: PortNumber) -> MacAddress {
    MacAddress::from_number(MAC_BASE | (port.get() as u64) << 24 | number.get() as u64)
}

/// The IPv4 address of adapter `number`.
pub const fn ipv4(number: Lid) -> Ipv4Addr {
    let [high, low] = number.get().to_be_bytes();
    Ipv4Addr::new(198, 18, high, low)
}

/// The IPv6 address of adapter `number`.
pub const fn ipv6(number: Lid) -> Ipv6Addr {
    Ipv6Addr::from_bits(IPV6_BASE | number.get() as u128)
}

/// The adapter with this MAC address; `None` if the address is foreign.
pub const fn adapter_of_mac(address: MacAddress) -> Option<Lid> {
    let number = address.number() ^ MAC_BASE;
    if number > u16::MAX as u64 { None } else { Some(Lid::new(number as u16)) }
}

/// The adapter with this address on its link; `None` if the address is foreign.
pub const fn adapter_of(address: Address) -> Option<Lid> {
    match address {
        Address::Lid(lid) => Some(lid),
        Address::Mac(mac) => adapter_of_mac(mac),
    }
}

/// The adapter with this IPv4 address; `None` if the address is foreign.
pub const fn adapter_of_ipv4(address: Ipv4Addr) -> Option<Lid> {
    match address.octets() {
        [198, 18, high, low] => Some(Lid::new(u16::from_be_bytes([high, low]))),
        _ => None,
    }
}

/// The adapter with this IPv6 address; `None` if the address is foreign.
pub const fn adapter_of_ipv6(address: Ipv6Addr) -> Option<Lid> {
    let number = address.to_bits() ^ IPV6_BASE;
    if number > u16::MAX as u128 { None } else { Some(Lid::new(number as u16)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_an_adapter_follow_the_plan() {
        let number = Lid::new(0x0209);
        assert_eq!(mac(number).to_string(), "02:00:00:00:02:09");
        assert_eq!(ipv4(number).to_string(), "198.18.2.9");
        assert_eq!(ipv6(number).to_string(), "2001:db8::209");
        assert!(!mac(number).is_group());
    }

    #[test]
    fn every_address_maps_back_to_its_number() {
        for number in (0..=u16::MAX).map(Lid::new) {
            assert_eq!(adapter_of_mac(mac(number)), Some(number));
            assert_eq!(adapter_of_ipv4(ipv4(number)), Some(number));
            assert_eq!(adapter_of_ipv6(ipv6(number)), Some(number));
        }
    }

    #[test]
    fn an_address_one_bit_outside_the_plan_is_foreign() {
        let number = Lid::new(0x0209);
        for bit in 16..48 {
            let address = MacAddress::from_number(mac(number).number() ^ 1 << bit);
            assert_eq!(adapter_of_mac(address), None, "{address}");
        }
        for bit in 16..32 {
            let address = Ipv4Addr::from_bits(ipv4(number).to_bits() ^ 1 << bit);
            assert_eq!(adapter_of_ipv4(address), None, "{address}");
        }
        for bit in 16..128 {
            let address = Ipv6Addr::from_bits(ipv6(number).to_bits() ^ 1 << bit);
            assert_eq!(adapter_of_ipv6(address), None, "{address}");
        }
    }
}
