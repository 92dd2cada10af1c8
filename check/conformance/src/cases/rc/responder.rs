//! RC-01 to RC-08: what a responder answers to requests in their turn, early, late, wrong, and without a receive buffer.

use super::{GAP, OWN, acknowledgement, arrival, errors, play_nic, request};
use crate::ethernet::RATE;
use crate::prelude::*;
use crate::stimulus::{Expected, FIRST, Stimulus, judge, schedule, slot};
use proto::wire::infiniband::{ExtendedHeaders, NakCode, Opcode, Reth, Syndrome};
use testbed::frames::ethernet::acknowledged as answer;

/// Octets of a full packet, and of a short one.
const FULL: usize = 2048;
const SHORT: usize = 64;

/// The peers of the cases; those of RC-05 follow.
const ORDERLY: u16 = 2;
const GAPS: u16 = 3;
const AGAIN: u16 = 4;
const HALVES: u16 = 5;
const WRONG: u16 = 6;

/// The memory that every queue pair of the plan has.
const REGION: Reth =
    Reth { virtual_address: 0x1_0000_0000, remote_key: 0x7062_0001, dma_length: 0 };

/// An item by which the scenario has queue pairs of RC; its sender is played and sends nothing of it.
fn class() -> String {
    traffic("class", "h2", "h1", "messages = 1\nload = 0.1\nsize = \"64 B\"")
}

/// Requests of one peer.
struct Requests<'a> {
    case: &'static str,
    peer: u16,
    all: &'a mut Vec<Stimulus>,
}

impl Requests<'_> {
    fn add(&mut self, what: &str, frame: Frame, expected: Expected) {
        self.all.push(Stimulus::new(self.case, what, frame.octets, expected));
    }

    /// A SEND of `payload` octets.
    fn send(&mut self, what: &str, opcode: Opcode, psn: u32, payload: usize, expected: Expected) {
        let frame = request(self.peer, opcode, psn, payload, ExtendedHeaders::NONE);
        self.add(what, frame, expected);
    }

    /// An Only of a SEND.
    fn only(&mut self, what: &str, psn: u32, expected: Expected) {
        self.send(what, Opcode::RC_SEND_ONLY, psn, SHORT, expected);
    }

    /// A WRITE of `payload` octets, whose RETH `change` alters.
    fn write(
        &mut self,
        what: &str,
        (opcode, psn, payload): (Opcode, u32, usize),
        change: impl FnOnce(&mut Reth),
        expected: Expected,
    ) {
        let mut reth = Reth { dma_length: payload as u32, ..REGION };
        change(&mut reth);
        let begins = opcode.row().is_some_and(|row| row.begins_message());
        let extended = ExtendedHeaders { reth: begins.then_some(reth), ..ExtendedHeaders::NONE };
        self.add(what, request(self.peer, opcode, psn, payload, extended), expected);
    }
}

/// An ACK of this PSN with this MSN.
fn ack(psn: u32, msn: u32) -> Expected {
    Expected::Replies(None, Syndrome::ACK, [psn, msn])
}

/// The packet is lost for this reason, and draws an answer.
fn refuse(reason: DropReason, syndrome: Syndrome, psn: u32, msn: u32) -> Expected {
    Expected::Replies(Some(reason), syndrome, [psn, msn])
}

/// The rows of RC-01 to RC-05.
fn stimuli() -> Vec<Stimulus> {
    let mut all = Vec::new();
    in_turn(&mut Requests { case: "RC-01", peer: ORDERLY, all: &mut all });
    behind_gaps(&mut Requests { case: "RC-02", peer: GAPS, all: &mut all });
    again(&mut Requests { case: "RC-03", peer: AGAIN, all: &mut all });
    around_zero(&mut Requests { case: "RC-04", peer: HALVES, all: &mut all });
    wrong(&mut all);
    all
}

fn in_turn(of: &mut Requests<'_>) {
    of.only("an Only", 0, ack(0, 1));
    of.send("a First", Opcode::RC_SEND_FIRST, 1, FULL, ack(1, 1));
    of.send("a Middle", Opcode::RC_SEND_MIDDLE, 2, FULL, ack(2, 1));
    of.send("a Last", Opcode::RC_SEND_LAST, 3, 1, ack(3, 2));
    of.send("an Only without octets", Opcode::RC_SEND_ONLY, 4, 0, ack(4, 3));
    let longer = |reth: &mut Reth| reth.dma_length += 1;
    of.write("the First of a WRITE", (Opcode::RC_WRITE_FIRST, 5, FULL), longer, ack(5, 3));
    of.write("its Last", (Opcode::RC_WRITE_LAST, 6, 1), |_| {}, ack(6, 4));
    of.write("the Only of a WRITE", (Opcode::RC_WRITE_ONLY, 7, SHORT), |_| {}, ack(7, 5));
}

fn behind_gaps(of: &mut Requests<'_>) {
    let early = || Expected::Lost(DropReason::OutOfSequence);
    let nak = |psn, msn| refuse(DropReason::OutOfSequence, GAP, psn, msn);
    of.only("PSN 0", 0, ack(0, 1));
    of.only("PSN 2, the first behind the gap", 2, nak(1, 1));
    of.only("PSN 3, the second", 3, early());
    of.only("PSN 2 again", 2, early());
    of.only("PSN 1, which was missing", 1, ack(1, 2));
    of.only("PSN 2 in its turn", 2, ack(2, 3));
    of.only("PSN 9, behind another gap", 9, nak(3, 3));
    of.only("PSN 4, still behind it", 4, early());
    of.only("PSN 3, which was missing", 3, ack(3, 4));
    of.only("PSN 5, behind a third gap", 5, nak(4, 4));
}

fn again(of: &mut Requests<'_>) {
    let latest = |psn, msn| refuse(DropReason::Duplicate, Syndrome::ACK, psn, msn);
    of.only("PSN 0", 0, ack(0, 1));
    of.only("PSN 1", 1, ack(1, 2));
    of.only("PSN 1 again", 1, latest(1, 2));
    of.only("PSN 0 again", 0, latest(1, 2));
    of.only("PSN 3, behind a gap", 3, refuse(DropReason::OutOfSequence, GAP, 2, 2));
    of.only("PSN 1 once more", 1, latest(1, 2));
    of.only("PSN 2", 2, ack(2, 3));
}

/// The older half of the PSNs are duplicates, the newer half are ahead.
fn around_zero(of: &mut Requests<'_>) {
    let before = 0xff_ffff;
    let old = |msn| refuse(DropReason::Duplicate, Syndrome::ACK, before, msn);
    of.only("PSN ffffff, before 0", 0xff_ffff, old(0));
    of.only("PSN 800001", 0x80_0001, old(0));
    of.only("PSN 800000, the oldest", 0x80_0000, old(0));
    let early = DropReason::OutOfSequence;
    of.only("PSN 7fffff, the newest", 0x7f_ffff, refuse(early, GAP, 0, 0));
    of.only("PSN 0", 0, ack(0, 1));
    of.only("PSN 800001, the oldest now", 0x80_0001, refuse_again(0, 1));
    of.only("PSN 800000, the newest now", 0x80_0000, refuse(early, GAP, 1, 1));
}

fn refuse_again(psn: u32, msn: u32) -> Expected {
    refuse(DropReason::Duplicate, Syndrome::ACK, psn, msn)
}

/// Requests that end a connection, each of a peer of its own, and then one that is right.
fn wrong(all: &mut Vec<Stimulus>) {
    type Row =
        (&'static str, bool, DropReason, NakCode, fn(&mut Requests<'_>, &str, u32, Expected));
    const INVALID: NakCode = NakCode::InvalidRequest;
    let rows: [Row; 11] = [
        ("a Middle without a First", false, DropReason::Opcode, INVALID, |of, what, psn, then| {
            of.send(what, Opcode::RC_SEND_MIDDLE, psn, FULL, then);
        }),
        ("a Last without a First", false, DropReason::Opcode, INVALID, |of, what, psn, then| {
            of.send(what, Opcode::RC_SEND_LAST, psn, SHORT, then);
        }),
        ("an Only inside a message", true, DropReason::Opcode, INVALID, |of, what, psn, then| {
            of.only(what, psn, then);
        }),
        ("the Last of a WRITE", true, DropReason::Opcode, INVALID, |of, what, psn, then| {
            of.write(what, (Opcode::RC_WRITE_LAST, psn, SHORT), |_| {}, then);
        }),
        ("a First not full", false, DropReason::PacketLength, INVALID, |of, what, psn, then| {
            of.send(what, Opcode::RC_SEND_FIRST, psn, FULL - 4, then);
        }),
        ("a Last of no octets", true, DropReason::PacketLength, INVALID, |of, what, psn, then| {
            of.send(what, Opcode::RC_SEND_LAST, psn, 0, then);
        }),
        ("a READ", false, DropReason::Opcode, INVALID, |of, what, psn, then| {
            let extended = ExtendedHeaders { reth: Some(REGION), ..ExtendedHeaders::NONE };
            let frame = request(of.peer, Opcode::RC_READ_REQUEST, psn, 0, extended);
            of.add(what, frame, then);
        }),
        ("another R_Key", false, DropReason::Key, NakCode::RemoteAccess, |of, what, psn, then| {
            let change = |reth: &mut Reth| reth.remote_key ^= 1;
            of.write(what, (Opcode::RC_WRITE_ONLY, psn, SHORT), change, then);
        }),
        (
            "before its region",
            false,
            DropReason::Key,
            NakCode::RemoteAccess,
            |of, what, psn, then| {
                let change = |reth: &mut Reth| reth.virtual_address -= 1;
                of.write(what, (Opcode::RC_WRITE_ONLY, psn, SHORT), change, then);
            },
        ),
        ("less than DMALen", false, DropReason::PacketLength, INVALID, |of, what, psn, then| {
            let change = |reth: &mut Reth| reth.dma_length += 1;
            of.write(what, (Opcode::RC_WRITE_ONLY, psn, SHORT), change, then);
        }),
        ("DMALen in a First", false, DropReason::PacketLength, INVALID, |of, what, psn, then| {
            of.write(what, (Opcode::RC_WRITE_FIRST, psn, FULL), |_| {}, then);
        }),
    ];
    for (peer, (what, begun, reason, code, add)) in (WRONG..).zip(rows) {
        let of = &mut Requests { case: "RC-05", peer, all: &mut *all };
        if begun {
            of.send("a First", Opcode::RC_SEND_FIRST, 0, FULL, ack(0, 0));
        }
        let psn = u32::from(begun);
        add(of, what, psn, refuse(reason, Syndrome::Nak(code), psn, 0));
        let then = format!("{what}, then an Only");
        of.only(&then, psn, Expected::Lost(DropReason::QueuePair));
    }
}

static RUN: Shared<Record> = Shared::new(|on| {
    let stimuli = stimuli();
    let duration = format!("{} ms", slot(stimuli.len()).as_ps() / 1_000_000_000 + 10);
    let peers = (WRONG + 10 - OWN) as u8;
    play_nic(on, (peers, &duration), ("ack_every = 1", &class()), |script| {
        schedule(script, &stimuli);
    })
});

/// Judges the rows of `case`; the messages that the peers from `first` on have delivered must be so many.
fn rows(on: Level, case: &str, first: u16, delivered: &[u64]) -> Result<usize> {
    let record = RUN.on(on)?;
    let count = judge(case, &stimuli(), &record)?;
    for (peer, expected) in (first..).zip(delivered) {
        let of = |one: &&proto::counters::ReceptionReading| one.flow.source == u64::from(peer);
        let found = record.reading.receptions.iter().find(of).map_or(0, |one| one.messages);
        same(format!("messages of adapter {peer} delivered"), found, *expected)?;
    }
    Ok(count)
}

/// RC-01.
pub fn acknowledged(on: Level) -> Finding {
    let count = rows(on, "RC-01", ORDERLY, &[5])?;
    Ok(format!(
        "{count} packets of 5 messages, each acknowledged by its PSN; the MSN counts messages"
    ))
}

/// RC-02.
pub fn one_nak_a_gap(on: Level) -> Finding {
    rows(on, "RC-02", GAPS, &[4])?;
    Ok("three gaps, one NAK each, of the first missing PSN".into())
}

/// RC-03.
pub fn duplicates(on: Level) -> Finding {
    rows(on, "RC-03", AGAIN, &[3])?;
    Ok("three duplicates acknowledged by the latest PSN, none delivered".into())
}

/// RC-04.
pub fn halves(on: Level) -> Finding {
    rows(on, "RC-04", HALVES, &[1])?;
    Ok("2^23 PSNs before the expected one are duplicates, 2^23 - 1 behind it are ahead".into())
}

/// RC-05.
pub fn refused(on: Level) -> Finding {
    let count = rows(on, "RC-05", WRONG, &[0; 11])?;
    let record = RUN.on(on)?;
    for peer in WRONG..WRONG + 11 {
        same(format!("errors of the queue pair to {peer}"), errors(&record, peer).len(), 1)?;
    }
    Ok(format!("{count} packets: each wrong one draws its NAK, and the queue pair takes no more"))
}

/// RC-06: a receive buffer, posted again after 33 ms; RNR NAKs ask for 40 ms, which is code 24.
const SCARCE: &str =
    "receive_depth = 1, receive_refill = \"33 ms\", rnr_timer = \"40 ms\", rnr_retry = 7";
const RNR: Syndrome = Syndrome::Rnr { timer: 24 };

fn without_buffers() -> Vec<Stimulus> {
    let mut all = Vec::new();
    let of = &mut Requests { case: "RC-06", peer: ORDERLY, all: &mut all };
    let not_ready = |psn, msn| refuse(DropReason::ReceiverNotReady, RNR, psn, msn);
    of.only("the only receive", 0, ack(0, 1));
    of.only("none is left", 1, not_ready(1, 1));
    of.only("behind it", 2, Expected::Lost(DropReason::OutOfSequence));
    of.only("again", 1, not_ready(1, 1));
    of.write("a WRITE takes none", (Opcode::RC_WRITE_ONLY, 1, SHORT), |_| {}, ack(1, 2));
    of.only("behind the WRITE", 2, not_ready(2, 2));
    of.only("after 36 ms", 2, ack(2, 3));
    of.only("a duplicate takes none", 2, refuse_again(2, 3));
    all
}

/// RC-06.
pub fn not_ready(on: Level) -> Finding {
    let stimuli = without_buffers();
    let record = play_nic(on, (1, "250 ms"), (SCARCE, &class()), |script| {
        schedule(script, &stimuli);
    })?;
    judge("RC-06", &stimuli, &record)?;
    Ok("an RNR NAK of the expected PSN with code 24 for 40 ms, each time; then the SEND is taken"
        .into())
}

/// Answers of the NIC: PSN, syndrome and MSN, and when each began to leave.
fn answers(record: &Record) -> Vec<(Instant, (u32, Syndrome, u32))> {
    let read = |seen: &Seen| Some((seen.start(RATE), answer(&seen.frame)?));
    record.packets(1).filter_map(read).collect()
}

/// The answers of the NIC must be these, and none else, at these instants.
fn compare(record: &Record, expected: &[(Instant, (u32, Syndrome, u32))]) -> Result<()> {
    let found = answers(record);
    let of = |all: &[(Instant, _)]| all.iter().map(|one| one.1).collect::<Vec<_>>();
    same("answers", of(&found), of(expected))?;
    found.iter().zip(expected).try_for_each(|((found, what), (due, _))| {
        near(format!("the answer {what:?}"), *found, *due, record.within(us(200)))
    })
}

/// RC-07: an acknowledgement for four requests, or after 20 ms.
pub fn coalesced(on: Level) -> Finding {
    let delay = us(20_000);
    // Four; then two; then one, and one behind a gap; then a duplicate.
    let bursts: [(u64, &[u32]); 5] =
        [(0, &[0, 1, 2, 3]), (20, &[4, 5]), (60, &[6]), (65, &[8]), (100, &[3])];
    let only = |psn| request(ORDERLY, Opcode::RC_SEND_ONLY, psn, SHORT, ExtendedHeaders::NONE);
    let at = |after: u64| FIRST + us(after * 1_000);
    let keys = "ack_every = 4, ack_delay = \"20 ms\"";
    let record = play_nic(on, (1, "300 ms"), (keys, &class()), |script| {
        for (after, psns) in bursts {
            script.at(at(after), move |bed| {
                psns.iter().for_each(|psn| bed.send_frame(1, &only(*psn)));
            });
        }
    })?;
    let fourth = arrival(at(0), &only(0)) + only(0).line_size().time_at(RATE) * 3;
    let expected = [
        (fourth, (3, Syndrome::ACK, 4)),
        (arrival(at(20), &only(4)) + delay, (5, Syndrome::ACK, 6)),
        (arrival(at(65), &only(8)), (7, GAP, 7)),
        (arrival(at(100), &only(3)), (6, Syndrome::ACK, 7)),
    ];
    compare(&record, &expected)?;
    Ok("one for four requests, one 20 ms after the first of two; a NAK covers what is owed".into())
}

/// RC-08: a NIC that puts requests into order. PSN 4 is late, 13 is beyond the window behind 5.
const ORDER: [(usize, u32); 7] = [(0, 0), (1, 2), (2, 3), (3, 1), (4, 5), (9, 4), (10, 13)];
const REORDERED: &str = "resequence = { window = 8, timeout = \"20 ms\" }";

/// RC-08.
pub fn resequenced(on: Level) -> Finding {
    let only = |psn| request(ORDERLY, Opcode::RC_SEND_ONLY, psn, SHORT, ExtendedHeaders::NONE);
    let record = play_nic(on, (1, "300 ms"), (REORDERED, &class()), |script| {
        for (number, psn) in ORDER {
            script.at(slot(number), move |bed| bed.send_frame(1, &only(psn)));
        }
        [3, 5, 9].into_iter().for_each(|number| script.at(slot(number), |bed| bed.sample()));
    })?;
    let came = |number: usize| arrival(slot(number), &only(0));
    // What is released is acknowledged back to back.
    let line = acknowledgement(ORDERLY, Syndrome::ACK, 0, 0).line_size().time_at(RATE);
    let expected = [
        (came(0), (0, Syndrome::ACK, 1)),
        (came(3), (1, Syndrome::ACK, 2)),
        (came(3) + line, (2, Syndrome::ACK, 3)),
        (came(3) + line * 2, (3, Syndrome::ACK, 4)),
        (came(4) + us(20_000), (4, GAP, 4)),
        (came(9), (4, Syndrome::ACK, 5)),
        (came(10), (5, GAP, 5)),
    ];
    compare(&record, &expected)?;
    let buffered: Vec<u64> = record.samples.iter().map(|one| one.balance.buffered).collect();
    let held: &[u64] = if on == Level::Live { &[] } else { &[2, 1, 0] };
    same("packets held", &buffered[..], held)?;
    Ok("two packets wait for the missing one and are acknowledged behind it; a gap draws its NAK after \
        20 ms, or at once beyond the window"
        .into())
}
