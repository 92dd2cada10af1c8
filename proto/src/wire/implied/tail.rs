//! The octets behind an implied payload, in a time that does not depend on its length.
//!
//! A CRC is linear: the register behind some octets and `n` more is the register behind the former times x^(8·n), plus that of
//! the latter from a register of zero. The latter are the same octets of the pattern in every frame, so both terms come from
//! tables.

use super::PAYLOAD_KEPT;
use crate::frame::FrameKind;
use crate::wire::ethernet::{Envelope, Preface};
use crate::wire::infiniband::{crc, envelope};
use crate::wire::project::{ProjectTypes, pattern};
use crate::wire::roce::{Layout, checks};

/// The longest implied payload in the tables: that of the largest path MTU.
const IMPLIED_MAX: usize = 4096 - PAYLOAD_KEPT;

/// The octets of a word, to which a payload is padded.
const WORD: usize = 4;

/// A CRC whose register of `octets` octets shifts right: its highest bit is x^0.
struct Code {
    octets: u32,
    /// The register after one zero octet, by its low octet before.
    steps: [u32; 256],
    /// The register behind so many octets of implied payload and pad, from zero.
    behind: [u32; IMPLIED_MAX + 1],
    /// x^(32·n).
    powers: [u32; IMPLIED_MAX / WORD + 1],
}

/// ICRC. Source: IBTA Vol 1, 7.8.
static ICRC: Code = Code::new(0x04c1_1db7_u32.reverse_bits(), 4);
/// VCRC. Source: IBTA Vol 1, 7.8.
static VCRC: Code = Code::new(0x100b_u16.reverse_bits() as u32, 2);

impl Code {
    const fn new(generator: u32, octets: u32) -> Code {
        let mut steps = [0; 256];
        let mut octet = 0;
        while octet < steps.len() {
            let (mut register, mut bit) = (octet as u32, 0);
            while bit < 8 {
                register = register >> 1 ^ generator & (register & 1).wrapping_neg();
                bit += 1;
            }
            steps[octet] = register;
            octet += 1;
        }
        let (behind, powers) = ([0; IMPLIED_MAX + 1], [0; IMPLIED_MAX / WORD + 1]);
        Code { octets, steps, behind, powers }.filled()
    }

    const fn filled(mut self) -> Code {
        let (mut register, mut n) = (0, 0);
        while n < IMPLIED_MAX {
            register = self.step(register, pattern::octet(PAYLOAD_KEPT + n));
            n += 1;
            self.behind[n] = self.zeros(register, n.wrapping_neg() % WORD);
        }
        self.powers[0] = 1 << (self.octets * 8 - 1);
        let mut word = 1;
        while word < self.powers.len() {
            self.powers[word] = self.zeros(self.powers[word - 1], WORD);
            word += 1;
        }
        self
    }

    const fn step(&self, register: u32, octet: u8) -> u32 {
        self.steps[(register as u8 ^ octet) as usize] ^ register >> 8
    }

    /// The register after so many zero octets.
    const fn zeros(&self, mut register: u32, count: usize) -> u32 {
        let mut done = 0;
        while done < count {
            register = self.step(register, 0);
            done += 1;
        }
        register
    }

    /// The register behind `implied` octets of payload and their pad, if it was `register` before them.
    fn behind(&self, register: u32, implied: usize) -> u32 {
        let product = carryless(register, self.powers[implied.div_ceil(WORD)]) << 1;
        let bits = self.octets * 8;
        let low = product as u32 & u32::MAX >> (32 - bits);
        (product >> bits) as u32 ^ self.zeros(low, self.octets as usize) ^ self.behind[implied]
    }
}

/// The product of two polynomials over GF(2). Every fourth bit is multiplied by itself, so that no carry reaches the next.
fn carryless(a: u32, b: u32) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let part = |number: u32, bit: usize| u64::from(number) & EVERY_FOURTH << bit;
    let (a, b) = ([0, 1, 2, 3].map(|bit| part(a, bit)), [0, 1, 2, 3].map(|bit| part(b, bit)));
    let bits = |sum: usize| {
        let terms = (0..4).map(|bit| a[bit].wrapping_mul(b[(sum + 4 - bit) % 4]));
        terms.fold(0, |all, term| all ^ term) & EVERY_FOURTH << sum
    };
    bits(0) | bits(1) | bits(2) | bits(3)
}

/// Pad, ICRC and VCRC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    octets: [u8; WORD - 1 + 4 + 2],
    begin: usize,
    end: usize,
}

impl Tail {
    pub fn octets(&self) -> &[u8] {
        &self.octets[self.begin..self.end]
    }

    /// The tail of a frame of `length` octets that has `head` before `implied` octets of payload. `None` if it needs
    /// more than tables: a longer payload, or a UDP checksum, which is in the head.
    pub fn of(kind: FrameKind, head: &[u8], implied: usize, length: usize) -> Option<Tail> {
        if implied > IMPLIED_MAX {
            return None;
        }
        let mut tail = Tail { octets: [0; 9], begin: (implied + 3) % WORD, end: 7 };
        let before = match kind {
            FrameKind::Ethernet => of_roce(head, length)?,
            _ => crc::icrc_over(envelope::bth_offset(head).ok()??, head),
        };
        let icrc = !ICRC.behind(!before, implied);
        tail.octets[3..7].copy_from_slice(&icrc.to_le_bytes());
        if kind != FrameKind::Ethernet {
            let register = VCRC.behind(u32::from(!crc::crc16(head)), implied);
            let register =
                icrc.to_le_bytes().iter().fold(register, |at, octet| VCRC.step(at, *octet));
            tail.octets[7..].copy_from_slice(&(!register as u16).to_le_bytes());
            tail.end = 9;
        }
        Some(tail)
    }
}

/// The ICRC of the head of a RoCE packet; `None` if its UDP datagram has a checksum.
fn of_roce(head: &[u8], length: usize) -> Option<u32> {
    let layout = layout(head, length)?;
    let is_summed = layout.udp_at().is_some_and(|at| head[at + 6..at + 8] != [0, 0]);
    (!is_summed).then(|| checks::icrc_over(&head[layout.network_at..], &layout))
}

/// The layout of a frame of `length` octets that begins with `head`. An EtherType that is not another one can only announce a tag
/// of this project, whatever its configured number.
pub(super) fn layout(head: &[u8], length: usize) -> Option<Layout> {
    let kind = Envelope::parse(head).ok()?.ethertype();
    let preface = Preface::parse(head, &ProjectTypes::of_tag(kind)).ok()?;
    Layout::behind(head, length, preface).ok()?
}
