//! Numbers, addresses and octets as text.
//!
//! `format!` would take most of the time of `decode`, so values that every frame has are written without it.

use super::layer::{Field, Form};
use std::io::Write as _;
use std::net::Ipv6Addr;

/// Appends the value of `field` in the header at the front of `octets` as a tree shows it.
pub(super) fn text(line: &mut Vec<u8>, field: &Field, octets: &[u8]) {
    if field.form == Form::Ipv6 {
        let address: [u8; 16] =
            octets[field.at / 8..][..16].try_into().expect("an address begins at a whole octet");
        // Writing to memory cannot fail.
        return drop(write!(line, "{}", Ipv6Addr::from(address)));
    }
    let value = field.read(octets);
    match field.form {
        Form::Signed => signed(line, field.bits, value),
        Form::Mac => {
            let octets = &value.to_be_bytes()[2..];
            separated(line, b':', octets, |line, octet| hex(line, &[octet]));
        }
        Form::Ipv4 => {
            let octets = &value.to_be_bytes()[4..];
            separated(line, b'.', octets, |line, octet| number(line, octet.into()));
        }
        // All hexadecimal digits; the width is a multiple of eight.
        Form::Wide | Form::Code if field.bits >= 16 => {
            line.extend_from_slice(b"0x");
            hex(line, &value.to_be_bytes()[8 - field.bits / 8..]);
        }
        _ => number(line, value),
    }
}

fn separated(line: &mut Vec<u8>, mark: u8, octets: &[u8], write: impl Fn(&mut Vec<u8>, u8)) {
    for (index, octet) in octets.iter().enumerate() {
        if index > 0 {
            line.push(mark);
        }
        write(line, *octet);
    }
}

pub(super) fn signed(line: &mut Vec<u8>, bits: usize, value: u64) {
    let value = (value << (64 - bits)) as i64 >> (64 - bits);
    if value < 0 {
        line.push(b'-');
    }
    number(line, value.unsigned_abs());
}

/// Appends a decimal number.
#[inline]
pub(super) fn number(line: &mut Vec<u8>, value: u64) {
    if value < 10 {
        line.push(b'0' + value as u8);
    } else {
        line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }
}

/// Appends two hexadecimal digits for each octet, sixteen octets a step: compilers make vector code of that.
#[inline]
pub fn hex(line: &mut Vec<u8>, octets: &[u8]) {
    let (wide, rest) = octets.as_chunks::<16>();
    line.reserve(2 * octets.len());
    for chunk in wide {
        let mut digits = [0; 32];
        for (place, octet) in digits.as_chunks_mut::<2>().0.iter_mut().zip(chunk) {
            *place = pair(*octet);
        }
        line.extend_from_slice(&digits);
    }
    for octet in rest {
        line.extend_from_slice(&pair(*octet));
    }
}

/// The two hexadecimal digits of an octet.
pub(super) const fn pair(octet: u8) -> [u8; 2] {
    const fn digit(nibble: u8) -> u8 {
        nibble + b'0' + (nibble > 9) as u8 * (b'a' - b'0' - 10)
    }
    [digit(octet >> 4), digit(octet & 0xf)]
}
