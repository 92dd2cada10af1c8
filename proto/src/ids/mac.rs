//! MAC addresses, as six octets, as a 48-bit number and as text.

use crate::units::written_as_text;
use std::fmt;
use std::str::FromStr;

/// The address of a port on Ethernet. Source: IEEE 802.3, 3.2.3; IEEE 802, 8.2.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress([u8; MacAddress::LEN]);

/// Error of parsing a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address: write six pairs of hexadecimal digits with colons between")]
pub struct NoMacAddress(String);

impl MacAddress {
    /// Length on the wire, in octets.
    pub const LEN: usize = 6;

    /// The destination of MAC control frames, which bridges do not forward.
    ///
    /// Source: IEEE 802.3, 31B.1.
    pub const MAC_CONTROL: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);

    /// The broadcast address.
    pub const BROADCAST: MacAddress = MacAddress([0xff; MacAddress::LEN]);

    /// The address with these octets, in transmission order.
    pub const fn new(octets: [u8; MacAddress::LEN]) -> MacAddress {
        MacAddress(octets)
    }

    /// The address whose number is the low 48 bits of `number`.
    pub const fn from_number(number: u64) -> MacAddress {
        let [_, _, octets @ ..] = number.to_be_bytes();
        MacAddress(octets)
    }

    /// The octets as one number, first transmitted octet most significant.
    pub const fn number(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The octets, in transmission order.
    pub const fn octets(self) -> [u8; MacAddress::LEN] {
        self.0
    }

    /// True for group addresses (multicast and broadcast).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddress {
    type Err = NoMacAddress;

    fn from_str(text: &str) -> Result<MacAddress, NoMacAddress> {
        let no_address = || NoMacAddress(text.to_owned());
        let mut octets = [0; MacAddress::LEN];
        let mut pairs = text.split(':');
        for octet in &mut octets {
            let pair = pairs.next().filter(|pair| pair.len() == 2).ok_or_else(no_address)?;
            // `from_str_radix` would accept a sign.
            let digits = pair.bytes().all(|digit| digit.is_ascii_hexdigit());
            let number = u8::from_str_radix(pair, 16).ok().filter(|_| digits);
            *octet = number.ok_or_else(no_address)?;
        }
        if pairs.next().is_some() { Err(no_address()) } else { Ok(MacAddress(octets)) }
    }
}

written_as_text!(MacAddress);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_number_and_text_round_trip() {
        let address = MacAddress::new([0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32]);
        assert_eq!(address.number(), 0x7cfe_9064_3b32);
        assert_eq!(MacAddress::from_number(0xffff_7cfe_9064_3b32), address);
        assert_eq!(address.to_string(), "7c:fe:90:64:3b:32");
        assert_eq!("7C:fe:90:64:3b:32".parse(), Ok(address));
        assert!(!address.is_group());
        assert!(MacAddress::MAC_CONTROL.is_group() && MacAddress::BROADCAST.is_group());
    }

    #[test]
    fn what_is_no_address_is_named() {
        for text in ["", "7c:fe:90:64:3b", "7c:fe:90:64:3b:32:00", "7c:fe:90:64:3b:+2", "x"] {
            let refused = text.parse::<MacAddress>().expect_err(text);
            assert!(refused.to_string().starts_with(&format!("{text:?} is not a MAC address")));
        }
    }
}
