//! IMP: what a network may do to the tester's packets. Whatever happens, every message arrives once, in order, unaltered.
//!
//! The tester is a go-back-N requester. A row names what happens to the packet with a relative PSN at its n-th
//! transmission.

use super::pair::{Pair, RECEIVE, RECEIVES, Terms, content, names};
use super::receive::repair_icrc;
use super::{Got, Nic, Scripts};
use crate::verdict::{Check, Fault, must};
use bytes::BytesMut;
use proto::units::Duration;
use proto::wire::infiniband::{Opcode, Syndrome};
use verbs::work::Status;

pub(super) const SCRIPTS: Scripts = &[
    ("IMP-01", |nic| impaired(nic, &[(3, 1, Event::Drop)])),
    ("IMP-02", |nic| impaired(nic, &[(3, 1, Event::Drop), (3, 2, Event::Drop)])),
    ("IMP-03", |nic| impaired(nic, &[(7, 1, Event::Drop)])),
    ("IMP-04", |nic| impaired(nic, &[(3, 1, Event::Duplicate)])),
    ("IMP-05", |nic| impaired(nic, &[(3, 1, Event::Behind(1))])),
    ("IMP-06", |nic| impaired(nic, &[(2, 1, Event::Behind(3))])),
    ("IMP-07", |nic| impaired(nic, &[(3, 1, Event::Delay)])),
    ("IMP-08", |nic| impaired(nic, &[(3, 1, Event::Mark)])),
    ("IMP-09", |nic| impaired(nic, &[(3, 1, Event::Flip(-12))])),
    ("IMP-10", |nic| impaired(nic, &[(3, 1, Event::Flip(53))])),
    ("IMP-11", |nic| impaired(nic, &[(3, 1, Event::Flip(-1))])),
    ("IMP-12", |nic| impaired(nic, &[(3, 1, Event::Flip(22))])),
    ("IMP-13", |nic| impaired(nic, &[(3, 1, Event::Truncate(20))])),
    ("IMP-14", |nic| {
        impaired(nic, &[(0, 1, Event::Drop), (4, 1, Event::Drop), (6, 2, Event::Drop)])
    }),
    ("IMP-15", |nic| impaired(nic, &[(3, 1, Event::LoseAnswers)])),
    ("IMP-16", |nic| impaired(nic, &[(3, 1, Event::Trailer)])),
];

/// Messages of one packet each.
const MESSAGES: u32 = 8;

/// What happens to a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Drop,
    Duplicate,
    /// It arrives behind so many of its successors.
    Behind(u32),
    /// It arrives 5 ms later.
    Delay,
    /// CE, with a right IPv4 checksum.
    Mark,
    /// A bit of this octet is flipped, counted from the end if negative.
    Flip(isize),
    /// It ends so many octets earlier.
    Truncate(usize),
    /// Answers up to this packet are lost.
    LoseAnswers,
    /// Octets follow its ICRC, as behind a short frame.
    Trailer,
}

type Row = (u32, u32, Event);

/// What arrives in place of one frame, and behind how many others.
fn arrives(octets: &BytesMut, event: Option<Event>) -> Vec<(u32, BytesMut)> {
    let mut changed = octets.clone();
    match event {
        Some(Event::Drop) => return Vec::new(),
        Some(Event::Duplicate) => return vec![(0, changed.clone()), (0, changed)],
        Some(Event::Behind(count)) => return vec![(count, changed)],
        Some(Event::Mark) => {
            changed[15] |= 3;
            let right =
                proto::wire::internet::checksum::ipv4_header(&changed[14..34]).to_be_bytes();
            changed[24..26].copy_from_slice(&right);
            repair_icrc(&mut changed);
        }
        Some(Event::Flip(place)) => {
            let at = if place < 0 { changed.len() - place.unsigned_abs() } else { place as usize };
            changed[at] ^= 0x10;
        }
        Some(Event::Truncate(count)) => changed.truncate(changed.len() - count),
        Some(Event::Trailer) => changed.extend_from_slice(&[0x5a; 8]),
        Some(Event::Delay | Event::LoseAnswers) | None => {}
    }
    vec![(0, changed)]
}

/// The tester's go-back-N requester.
struct Requester<'a> {
    rows: &'a [Row],
    transmissions: [u32; MESSAGES as usize],
    base: u32,
    loses_until: Option<u32>,
}

impl Requester<'_> {
    /// Sends everything from the base on.
    fn burst(&mut self, nic: &mut Nic<'_>, pair: &Pair) -> Check<()> {
        let mut behind: Vec<(u32, BytesMut)> = Vec::new();
        for n in self.base..MESSAGES {
            self.transmissions[n as usize] += 1;
            let count = self.transmissions[n as usize];
            let row = self.rows.iter().find(|(which, nth, _)| (*which, *nth) == (n, count));
            let event = row.map(|(.., event)| *event);
            if event == Some(Event::Delay) {
                let mark = nic.mark();
                nic.during(mark, Duration::from_us(5_000))?;
            }
            if event == Some(Event::LoseAnswers) {
                self.loses_until = Some(n);
            }
            let octets = nic.frame(&pair.message(n)).octets;
            for (late, octets) in arrives(&octets, event) {
                match late {
                    0 => nic.send_octets(&octets)?,
                    _ => behind.push((n + late, octets)),
                }
            }
            for (_, octets) in behind.extract_if(.., |(after, _)| *after <= n) {
                nic.send_octets(&octets)?;
            }
        }
        for (_, octets) in behind {
            nic.send_octets(&octets)?;
        }
        Ok(())
    }

    /// Takes answers; whether something is to be sent again.
    fn take(&mut self, pair: &Pair, got: &[Got]) -> Check<bool> {
        let mut again = false;
        for got in got.iter().filter(|got| got.bth.opcode == Opcode::RC_ACKNOWLEDGE) {
            let Some(aeth) = got.extended.aeth else { continue };
            let n = got.bth.psn.distance_from(pair.in_psn(0));
            let n = u32::try_from(n).map_err(|_| {
                Fault::fail(format!("an answer of the past: {}", names(std::slice::from_ref(got))))
            })?;
            if self.loses_until.is_some_and(|until| n <= until) {
                continue;
            }
            match aeth.syndrome {
                Syndrome::Ack { .. } => self.base = self.base.max(n + 1),
                Syndrome::Nak(proto::wire::infiniband::NakCode::PsnSequence) => {
                    self.base = self.base.max(n);
                    again = true;
                }
                other => return Err(Fault::fail(format!("message {n} is answered by {other:?}"))),
            }
        }
        Ok(again)
    }
}

fn impaired(nic: &mut Nic<'_>, rows: &[Row]) -> Check {
    const TRIES: u32 = 8;
    let pair = nic.connect(Terms::default())?;
    nic.post_receives(&pair, MESSAGES)?;
    let transmissions = [0; MESSAGES as usize];
    let mut requester = Requester { rows, transmissions, base: 0, loses_until: None };
    let mut tries = 0;
    while requester.base < MESSAGES {
        must!(
            tries < TRIES,
            "{} of {MESSAGES} messages are acknowledged after {TRIES} tries",
            requester.base
        );
        tries += 1;
        let mark = nic.mark();
        requester.burst(nic, &pair)?;
        // Acknowledged, or a NAK, or silence, which is a timeout.
        let got = nic.packets(mark, 0)?;
        requester.take(&pair, &got)?;
        requester.loses_until = None;
    }
    let received = nic.received(&pair, MESSAGES as usize)?;
    let good = received.iter().all(|done| done.status == Status::Success);
    let ids: Vec<u64> = received.iter().map(|done| done.id).collect();
    must!(
        good && ids == (100..100 + u64::from(MESSAGES)).collect::<Vec<_>>(),
        "delivered: {received:?}"
    );
    for n in 0..MESSAGES {
        let octets = nic.memory(&pair, RECEIVES + u64::from(n * RECEIVE), 32)?;
        must!(octets == content(n, 32), "message {n} is altered");
    }
    Ok(format!("{MESSAGES} messages arrive once, in order and unaltered, in {tries} rounds"))
}
