//! The pattern in the payload of generated messages. Its first octets match no known protocol.

use bytes::BufMut;

/// The pattern repeats after so many octets.
const PERIOD: usize = 256;

/// A page of the pattern, several periods long.
static PAGE: [u8; 16 * PERIOD] = {
    let mut page = [0; 16 * PERIOD];
    let mut at = 0;
    while at < page.len() {
        page[at] = octet(at);
        at += 1;
    }
    page
};

/// The octet of the pattern at this place of the payload.
pub(crate) const fn octet(at: usize) -> u8 {
    (at as u8).wrapping_mul(7) ^ 0xa5
}

/// Appends `length` octets of the pattern to `octets`, which begin at octet `begin` of the payload.
pub fn append(octets: &mut impl BufMut, begin: usize, length: usize) {
    let (mut at, end) = (begin, begin + length);
    while at < end {
        let place = at % PERIOD;
        let part = (end - at).min(PAGE.len() - place);
        octets.put_slice(&PAGE[place..place + part]);
        at += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_continues_what_is_before_it() {
        let mut whole = Vec::new();
        append(&mut whole, 0, 10_000);
        assert_eq!(whole[..4], [0xa5, 0xa2, 0xab, 0xb0]);
        assert!((PERIOD..whole.len()).all(|at| whole[at] == whole[at - PERIOD]));
        for (begin, length) in [(0, 0), (24, 1), (24, 4072), (255, 2), (4095, 4098), (9_999, 1)] {
            let mut part = b"before".to_vec();
            append(&mut part, begin, length);
            assert_eq!(part[6..], whole[begin..begin + length], "{length} from {begin}");
        }
    }
}
