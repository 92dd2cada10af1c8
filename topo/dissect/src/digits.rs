//! Numbers, addresses and octets as text.
//!
//! `format!` would take most of the time of `decode`, so values that every frame has are written without it.

use super::layer::{Form, Value};
use std::io::Write as _;

/// Appends a value as a tree shows it.
pub(super) fn text(line: &mut Vec<u8>, form: Form, bits: usize, value: Value) {
    match (form, value) {
        (Form::Signed, Value::Bits(value)) => signed(line, bits, value),
        (Form::Wide, Value::Bits(value)) => code(line, bits, value),
        (Form::Mac, Value::Bits(value)) => {
            for (index, octet) in value.to_be_bytes()[2..].iter().enumerate() {
                if index > 0 {
                    line.push(b':');
                }
                hex(line, &[*octet]);
            }
        }
        (Form::Ipv4, Value::Bits(value)) => {
            for (index, octet) in value.to_be_bytes()[4..].iter().enumerate() {
                if index > 0 {
                    line.push(b'.');
                }
                number(line, u64::from(*octet));
            }
        }
        (Form::Code, Value::Bits(value)) if bits >= 16 => code(line, bits, value),
        (_, Value::Bits(value)) => number(line, value),
        // Writing to memory cannot fail.
        (_, Value::Ipv6(address)) => drop(write!(line, "{address}")),
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

/// Appends all hexadecimal digits of a number; `bits` is a multiple of four.
fn code(line: &mut Vec<u8>, bits: usize, value: u64) {
    line.extend_from_slice(b"0x");
    hex(line, &value.to_be_bytes()[8 - bits / 8..]);
}

/// Appends two hexadecimal digits for each octet, sixteen octets a step: compilers make vector code of that.
#[inline]
pub fn hex(line: &mut Vec<u8>, octets: &[u8]) {
    let (wide, rest) = octets.as_chunks::<16>();
    line.reserve(2 * octets.len());
    for chunk in wide {
        let mut digits = [0; 32];
        for (pair, octet) in digits.as_chunks_mut::<2>().0.iter_mut().zip(chunk) {
            *pair = [digit(octet >> 4), digit(octet & 0xf)];
        }
        line.extend_from_slice(&digits);
    }
    for octet in rest {
        let pair = [digit(octet >> 4), digit(octet & 0xf)];
        line.extend_from_slice(&pair);
    }
}

/// The hexadecimal digit of a number from 0 to 15.
pub(super) const fn digit(nibble: u8) -> u8 {
    nibble + b'0' + (nibble > 9) as u8 * (b'a' - b'0' - 10)
}
