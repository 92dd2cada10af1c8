//! Big-endian numbers at fixed places in a header.
//!
//! A place is a range of the header's private `field` module. One that is too narrow, or outside the
//! header, panics: a slip in that module which the first test finds, and no packet can cause.

use std::ops::Range;

fn at<const N: usize>(octets: &[u8], place: Range<usize>) -> [u8; N] {
    octets[place].try_into().expect("the field is as wide as the number read from it")
}

/// Two octets.
pub(crate) fn u16_at(octets: &[u8], place: Range<usize>) -> u16 {
    u16::from_be_bytes(at(octets, place))
}

/// Three octets.
pub(crate) fn u24_at(octets: &[u8], place: Range<usize>) -> u32 {
    let [high, middle, low] = at(octets, place);
    u32::from_be_bytes([0, high, middle, low])
}

/// Four octets.
pub(crate) fn u32_at(octets: &[u8], place: Range<usize>) -> u32 {
    u32::from_be_bytes(at(octets, place))
}

/// Eight octets.
pub(crate) fn u64_at(octets: &[u8], place: Range<usize>) -> u64 {
    u64::from_be_bytes(at(octets, place))
}

/// Sixteen octets.
pub(crate) fn u128_at(octets: &[u8], place: Range<usize>) -> u128 {
    u128::from_be_bytes(at(octets, place))
}

/// The low three octets of `value`, most significant first.
pub(crate) const fn u24(value: u32) -> [u8; 3] {
    let [_, high, middle, low] = value.to_be_bytes();
    [high, middle, low]
}
