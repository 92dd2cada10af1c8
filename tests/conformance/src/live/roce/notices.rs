//! ROCE-06 to ROCE-08, ROCE-15 and ROCE-16 live: what a NIC returns for marks, and what it refuses. Each
//! case has a peer of its own among the adapters that the tester plays.

use super::{dcqcn, marking};
use crate::bench::packets::ethernet::{CNP, blank, ecn, frame, roce, with_ecn};
use crate::case::{Failure, Finding, ensure, same};
use crate::groups::roce::notices::{described, is_cnp};
use crate::groups::roce::refusal::{PAYLOAD, odd};
use crate::live::cached::Cached;
use crate::live::ethernet::{DELAY, LOSSLESS, RATE, roomy, star};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::stimulus::slot;
use crate::live::tester::{Script, Seen};
use crate::live::{in_ms, ms, us};
use proto::frame::Frame;
use proto::ids::{Ecn, Lid, QueuePairNumber};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::roce::{Packet, PacketBuilder};

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);

/// The NIC on stage, and the peers of ROCE-06, ROCE-07, ROCE-08 and ROCE-15; that of ROCE-16 is 1.
const OWN: u16 = 4;
const MARKS: u16 = 2;
const TALKS: u16 = 3;
const PACED: u16 = 5;
const DAMAGED: u16 = 6;
const CE: Ecn = Ecn::CongestionExperienced;
/// What a CNP takes of the line: 74 octets and the FCS.
const CNP_TIME: Duration = Duration::from_ns(78 * 800);
/// N.
const INTERVAL: Duration = us(20_000);

/// Data with CE from adapter `from`.
fn marked(from: u16, psn: u32) -> Frame {
    frame(&with_ecn(&roce(from, OWN, LOSSLESS, psn), CE), PAYLOAD)
}

/// What comes in the slots after the first ones: what it is, and for which reason it is lost.
fn refused() -> Vec<(&'static str, String, Frame, &'static str)> {
    let good = marked(DAMAGED, 0);
    let end = good.octets.len();
    let bits = (0..8).map(|n| (end - PAYLOAD - 4 + n * 8) * 8 + n);
    let flipped = bits.map(|bit| {
        let mut bad = good.clone();
        bad.octets[bit / 8] ^= 0x80 >> (bit % 8);
        ("ROCE-15", format!("with bit {bit} flipped"), bad, "icrc")
    });
    let odd = odd().into_iter();
    let odd = odd.map(|odd| ("ROCE-16", odd.what.to_owned(), odd.frame, odd.at_nic));
    flipped.chain(odd).collect()
}

/// What CE is on, and whether it draws a CNP.
fn answers() -> [(&'static str, Frame, bool); 3] {
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 2 });
    let plain = with_ecn(&roce(TALKS, OWN, LOSSLESS, 1), CE);
    let ack = PacketBuilder {
        bth: Bth { opcode: Opcode::RC_ACKNOWLEDGE, ack_request: false, ..plain.bth },
        extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE },
        ..plain
    };
    let bth = Bth { opcode: Opcode::ROCEV2_CNP, becn: true, ack_request: false, ..plain.bth };
    let notice = PacketBuilder { bth, ..with_ecn(&roce(TALKS, OWN, CNP, 0), CE) };
    [
        ("ACK", frame(&ack, 0), false),
        ("CNP", blank(&notice, 16), false),
        ("data", marked(TALKS, 0), true),
    ]
}

/// The slots: a marked packet; three kinds of packet with CE; what is refused; good packets after it.
const FIRST: usize = 0;
const ANSWERS: usize = 2;
const REFUSED: usize = ANSWERS + 4;

fn good() -> [Frame; 2] {
    [marked(DAMAGED, 0), marked(1, 0)]
}

fn goods() -> usize {
    REFUSED + refused().len()
}

/// When marks come on every packet of one queue pair, and how far apart.
const PACING: (Instant, Instant) = (ms(400), ms(1_400));
const PACING_EVERY: Duration = us(3_000);

fn run() -> Result<Record, Failure> {
    let item = |name: &str, keys: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nfrom = \"h4\"\nto = \"h3\"\narrivals = \"backlog\"\n{keys}\n"
        )
    };
    let rest = [
        roomy(""),
        dcqcn("cnp_interval = \"20 ms\""),
        item("talk", "messages = 2\nsize = \"256 B\"\nstart = \"120 ms\""),
        item("class", "transport = \"uc\"\nmessages = 1\nsize = \"64 B\"\nstart = \"100 ms\""),
    ];
    let stage = Stage::new(&star(6, "1500 ms", "", &rest.concat()), "h4")?;
    let mut script = Script::default();
    let mut at = |number: usize, frame: Frame| {
        script.at(slot(number), move |tester| tester.send_frame(1, &frame));
    };
    at(FIRST, marked(MARKS, 0));
    for (number, (_, frame, _)) in answers().into_iter().enumerate() {
        at(ANSWERS + number, frame);
    }
    for (number, (_, _, frame, _)) in refused().into_iter().enumerate() {
        at(REFUSED + number, frame);
    }
    for (number, frame) in good().into_iter().enumerate() {
        at(goods() + number, frame);
    }
    for (psn, when) in pacing_marks() {
        // UC, by the queue pair of the second class.
        let builder = with_ecn(&roce(PACED, OWN, LOSSLESS, psn), CE);
        let queue_pair = QueuePairNumber::planned(1, Lid::new(PACED));
        let bth = Bth {
            opcode: Opcode::UC_SEND_ONLY,
            ack_request: false,
            destination: queue_pair,
            ..builder.bth
        };
        let frame = frame(&PacketBuilder { bth, ..builder }, PAYLOAD);
        script.at(when, move |tester| tester.send_frame(1, &frame));
    }
    stage.run(script)
}

fn pacing_marks() -> impl Iterator<Item = (u32, Instant)> {
    let count = PACING.1.since(PACING.0).as_ps() / PACING_EVERY.as_ps();
    (0..count).map(|n| (n as u32, PACING.0 + PACING_EVERY * n))
}

/// What left in a slot.
fn left(record: &Record, number: usize) -> Vec<&Seen> {
    let (from, to) = (slot(number), slot(number + 1));
    record.packets(1).filter(|seen| seen.at >= from && seen.at < to).collect()
}

fn opcode(seen: &Seen) -> Option<Opcode> {
    let packet = Packet::parse(&seen.frame.octets).ok().flatten();
    packet.map(|packet| packet.transport.bth.opcode)
}

/// A CNP and an ACK left in the slot.
fn both(record: &Record, number: usize, what: &str) -> Result<(), Failure> {
    let drawn: Vec<_> = left(record, number).into_iter().filter_map(opcode).collect();
    let both = [Opcode::ROCEV2_CNP, Opcode::RC_ACKNOWLEDGE];
    let all = drawn.len() == 2 && both.iter().all(|opcode| drawn.contains(opcode));
    ensure(all, || format!("{what} draws {drawn:?}, expected a CNP and an ACK"))
}

/// ROCE-06.
pub fn class_of_cnp() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let sent: Vec<_> = left(record, FIRST).into_iter().filter(|seen| is_cnp(&seen.frame)).collect();
    same("CNPs for a marked packet", sent.len(), 1)?;
    let said = described(&sent[0].frame)?;
    let expected = "DSCP 48, NotCapable, ";
    ensure(said.contains(expected), || format!("the CNP says {said}, expected {expected}"))?;
    ensure(said.contains("B 1, F 0, A 0"), || format!("the CNP says {said}"))?;
    let longest = marking::notices_pass()?;
    Ok(format!(
        "Not-ECT with DSCP 48; behind a switch's marked data it waits {} at most, for the frame on the line; \
         never marked",
        in_ms(longest)
    ))
}

/// ROCE-07.
pub fn marks_on_answers() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    for (number, (what, _, draws)) in answers().into_iter().enumerate() {
        let number = ANSWERS + number;
        if draws {
            both(record, number, &format!("CE on {what}"))?;
            let acks = left(record, number).into_iter().filter(|seen| !is_cnp(&seen.frame));
            let codes: Vec<_> = acks.map(|seen| ecn(&seen.frame)).collect();
            ensure(codes == [Ecn::NotCapable], || format!("the ACK says {codes:?}"))?;
        } else {
            same(format!("what CE on {what} draws"), left(record, number).len(), 0)?;
        }
    }
    same("CNPs obeyed", record.named(1, "rp_cnp_handled"), 1)?;
    Ok("CE on an ACK and on a CNP draws nothing; on data it draws a CNP beside the ACK, which says Not-ECT"
        .to_owned())
}

/// ROCE-08.
pub fn pacing() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let here = record.packets(1).filter(|seen| seen.at >= PACING.0 && is_cnp(&seen.frame));
    let times: Vec<Instant> = here.map(|seen| seen.at).collect();
    let length = PACING.1.since(PACING.0).as_ps();
    let most = (length / INTERVAL.as_ps() + 1) * 105 / 100;
    ensure(!times.is_empty() && times.len() as u64 <= most, || {
        format!("{} CNPs in a second, at most {most} are due", times.len())
    })?;
    let size = frame(&roce(PACED, OWN, LOSSLESS, 0), PAYLOAD).line_size();
    let took = size.time_at(RATE);
    let due = PACING.0 + took + DELAY + CNP_TIME;
    let late = times[0].since(due);
    ensure(late <= record.twice_late() + us(100), || format!("the first is {late} late"))?;
    let shortest = times.windows(2).map(|pair| pair[1].since(pair[0])).min();
    let least = Duration::from_ps(INTERVAL.as_ps() * 95 / 100);
    ensure(shortest.is_none_or(|gap| gap >= least), || format!("{shortest:?} between two"))?;
    let marks = pacing_marks().count();
    Ok(format!(
        "{marks} marks in a second, N = {}: {} CNPs, the first at once",
        in_ms(INTERVAL),
        times.len()
    ))
}

/// What was refused of `case`, each alone and for its reason, without an answer; how many.
fn judge(case: &str, good: usize) -> Result<usize, Failure> {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let mut count = 0;
    for (number, (of, what, _, reason)) in refused().into_iter().enumerate() {
        if of != case {
            continue;
        }
        let number = REFUSED + number;
        let lost = record.dropped(1, slot(number), slot(number + 1));
        let lost: Vec<_> = lost.iter().map(|reason| reason.name()).collect();
        ensure(lost == [reason], || {
            format!("a packet {what} is lost for {lost:?}, expected {reason}")
        })?;
        same(format!("answers to a packet {what}"), left(record, number).len(), 0)?;
        count += 1;
    }
    both(record, goods() + good, "a good packet afterwards")?;
    Ok(count)
}

/// ROCE-15.
pub fn bad_icrc() -> Finding {
    let count = judge("ROCE-15", 0)?;
    Ok(format!(
        "{count} packets with CE and a bit flipped: as many icrc drops, no CNP, no ACK; a good one draws both"
    ))
}

/// ROCE-16.
pub fn not_roce() -> Finding {
    let count = judge("ROCE-16", 1)?;
    let at_switch = marking::not_roce()?;
    same("kinds at the switch", at_switch, count)?;
    Ok(format!(
        "{count} kinds: each lost at a NIC for its reason, without a CNP; passed or ended by a switch"
    ))
}
