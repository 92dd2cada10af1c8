//! Answers of subnet administration as the kernel's RMPP has them, in one segment.
//!
//! Under libumad2sim a manager marks an answer RMPPFlags.Active and states its length beside the datagram. A frame has
//! no such length, so the segment carries it, and the receiver acknowledges the segment.
//! Source: IBTA Vol 1, 13.6.2 (RMPP header), 13.6.2.3 (acknowledgement), 15.2.1.1 (SA header).

use crate::Datagram;
use crate::datagram::ADMINISTRATION;

const VERSION: usize = 24;
const TYPE: usize = 25;
const FLAGS: usize = 26;
const STATUS: usize = 27;
const SEGMENT: std::ops::Range<usize> = 28..32;
const LENGTH: std::ops::Range<usize> = 32..36;

const DATA: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 2;
const ACTIVE: u8 = 1;
/// Active, first and last.
const WHOLE: u8 = 7;
/// The response time in the upper five bits of the flags: none is stated.
const NO_TIME: u8 = 0x1f << 3;
/// Where the payload that the length counts begins.
const PAYLOAD: u64 = 36;
/// The shortest answer: its headers.
const LENGTH_MIN: u64 = 56;

/// What a datagram is to RMPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Nothing: it is whole by itself.
    None,
    /// A whole answer of so many octets.
    Whole(u64),
    /// An acknowledgement.
    Acknowledgement,
    /// A part of something, or nonsense.
    Other,
}

fn is_active(datagram: &Datagram) -> bool {
    datagram.class() == ADMINISTRATION && datagram.0[FLAGS] & ACTIVE != 0
}

/// Makes a segment of an answer of which a client has written `length` octets. Returns whether it is one.
pub fn divide(datagram: &mut Datagram, length: u64) -> bool {
    let is_segment = is_active(datagram) && (LENGTH_MIN..=Datagram::LEN as u64).contains(&length);
    if is_segment {
        let octets = &mut datagram.0;
        octets[VERSION] = 1;
        octets[TYPE] = DATA;
        octets[FLAGS] = NO_TIME | WHOLE;
        octets[STATUS] = 0;
        octets[SEGMENT].copy_from_slice(&1u32.to_be_bytes());
        octets[LENGTH].copy_from_slice(&((length - PAYLOAD) as u32).to_be_bytes());
    }
    is_segment
}

/// What a datagram of the fabric is.
pub fn of(datagram: &Datagram) -> Segment {
    if !is_active(datagram) {
        return Segment::None;
    }
    let octets = &datagram.0;
    let number = |range: std::ops::Range<usize>| {
        octets[range].iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
    };
    let length = PAYLOAD + number(LENGTH);
    let is_whole = octets[FLAGS] & WHOLE == WHOLE && number(SEGMENT) == 1;
    match octets[TYPE] {
        DATA if is_whole && (LENGTH_MIN..=Datagram::LEN as u64).contains(&length) => {
            Segment::Whole(length)
        }
        ACKNOWLEDGEMENT => Segment::Acknowledgement,
        _ => Segment::Other,
    }
}

/// The acknowledgement of a whole answer.
pub fn acknowledge(datagram: &Datagram) -> Datagram {
    let mut octets = [0; Datagram::LEN];
    octets[..LENGTH_MIN as usize].copy_from_slice(&datagram.0[..LENGTH_MIN as usize]);
    // The method without the bit of a response.
    octets[3] &= 0x7f;
    octets[TYPE] = ACKNOWLEDGEMENT;
    octets[FLAGS] = NO_TIME | ACTIVE;
    octets[STATUS] = 0;
    // The last segment of the window.
    octets[LENGTH].copy_from_slice(&1u32.to_be_bytes());
    Datagram(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::PERFORMANCE;

    #[test]
    fn a_divided_answer_tells_its_length_and_is_acknowledged() {
        let mut answer = Datagram::request(ADMINISTRATION, 0x92, 0x11, 0, 9);
        assert_eq!(of(&answer), Segment::None);
        assert!(!divide(&mut answer, 120));
        answer.0[FLAGS] = ACTIVE;
        assert!(!divide(&mut answer.clone(), 55));
        assert!(divide(&mut answer, 120));
        assert_eq!(of(&answer), Segment::Whole(120));
        let acknowledgement = acknowledge(&answer);
        assert_eq!(of(&acknowledgement), Segment::Acknowledgement);
        assert!(!acknowledgement.is_response());
        assert_eq!(acknowledgement.0[8..16], answer.0[8..16]);
    }

    #[test]
    fn parts_and_nonsense_are_neither() {
        let mut answer = Datagram::request(ADMINISTRATION, 0x92, 0x11, 0, 9);
        answer.0[FLAGS] = ACTIVE;
        divide(&mut answer, 256);
        let spoilt = |at: usize, octet: u8| {
            let mut copy = answer.clone();
            copy.0[at] = octet;
            of(&copy)
        };
        assert_eq!(spoilt(FLAGS, NO_TIME | 3), Segment::Other);
        assert_eq!(spoilt(31, 2), Segment::Other);
        assert_eq!(spoilt(33, 9), Segment::Other);
        assert_eq!(spoilt(TYPE, 4), Segment::Other);
        let mut other = answer.clone();
        other.0[1] = PERFORMANCE;
        assert_eq!(of(&other), Segment::None);
    }
}
