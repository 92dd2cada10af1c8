//! ROCE-06 to ROCE-08, ROCE-15 and ROCE-16: what a NIC returns for marks, and what it refuses. Each case
//! has a peer of its own among the played adapters.

use super::packets::{CE, OWN, PAYLOAD, is_cnp, odd, opcode_of};
use super::{dcqcn, marking};
use crate::ethernet::*;
use crate::prelude::*;
use crate::stimulus::slot;
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{NetworkHeaders, Packet, PacketBuilder};
use testbed::frames::ethernet::{CNP, blank, ecn, frame, roce, with_ecn};

static RUN: Shared<Record> = Shared::new(run);

/// The peers of ROCE-06, ROCE-07, ROCE-08 and ROCE-15; that of ROCE-16 is 1.
const MARKS: u16 = 2;
const TALKS: u16 = 3;
const PACED: [u16; 2] = [5, 2];
const DAMAGED: u16 = 6;
/// What a CNP takes of the line: 74 octets and the FCS.
const CNP_TIME: Duration = Duration::from_ns(78 * 800);
/// N.
const INTERVAL: Duration = us(20_000);

/// Data with CE from adapter `from`.
fn marked(from: u16, psn: u32) -> Frame {
    frame(&with_ecn(&roce(from, OWN, LOSSLESS, psn), CE), PAYLOAD)
}

/// What comes in the slots after the first ones: what it is, and for which reason it is lost.
fn refused(on: Level) -> Vec<(&'static str, String, Frame, &'static str)> {
    let good = marked(DAMAGED, 0);
    let end = good.octets.len();
    // Each bit of payload and ICRC; live a few of them.
    let step = if on == Level::Live { 65 } else { 1 };
    let bits = ((end - PAYLOAD - 4) * 8..end * 8).step_by(step);
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

fn goods(on: Level) -> usize {
    REFUSED + refused(on).len()
}

/// How far apart marks come on the packets of two queue pairs.
const PACING_EVERY: [Duration; 2] = [us(3_000), us(7_000)];

/// From when until when they do.
fn pacing_time(on: Level) -> (Instant, Instant) {
    let from = slot(goods(on) + 2) + us(100_000);
    (from, from + us(1_000_000))
}

fn run(on: Level) -> Result<Record, Failure> {
    let rest = [
        roomy(""),
        dcqcn("cnp_interval = \"20 ms\""),
        item("talk", "h4", "messages = 2\nsize = \"256 B\"\nstart = \"120 ms\""),
        item(
            "class",
            "h4",
            "transport = \"uc\"\nmessages = 1\nsize = \"64 B\"\nstart = \"100 ms\"",
        ),
    ];
    let duration = format!("{} us", pacing_time(on).1.as_ps() / 1_000_000 + 100_000);
    let stage = Stage::new(on, &star(6, &duration, "", &rest.concat()), "h4")?;
    let mut script = Script::default();
    let mut at = |number: usize, frame: Frame| {
        script.at(slot(number), move |bed| bed.send_frame(1, &frame));
    };
    at(FIRST, marked(MARKS, 0));
    for (number, (_, frame, _)) in answers().into_iter().enumerate() {
        at(ANSWERS + number, frame);
    }
    for (number, (_, _, frame, _)) in refused(on).into_iter().enumerate() {
        at(REFUSED + number, frame);
    }
    for (number, frame) in good().into_iter().enumerate() {
        at(goods(on) + number, frame);
    }
    for (peer, psn, when) in pacing_marks(on) {
        // UC, by the queue pair of the second class.
        let builder = with_ecn(&roce(peer, OWN, LOSSLESS, psn), CE);
        let queue_pair = QueuePairNumber::planned(1, Lid::new(peer));
        let bth = Bth {
            opcode: Opcode::UC_SEND_ONLY,
            ack_request: false,
            destination: queue_pair,
            ..builder.bth
        };
        let frame = frame(&PacketBuilder { bth, ..builder }, PAYLOAD);
        script.at(when, move |bed| bed.send_frame(1, &frame));
    }
    stage.run(script)
}

/// Sender, number and time of each marked packet of ROCE-08.
fn pacing_marks(on: Level) -> impl Iterator<Item = (u16, u32, Instant)> {
    let (from, to) = pacing_time(on);
    // Between two packets of the one there is room for one of the other.
    let begins = [from, from + us(1_500)];
    let flows = PACED.into_iter().zip(begins).zip(PACING_EVERY);
    flows.flat_map(move |((peer, begin), every)| {
        let count = to.since(begin).as_ps().div_ceil(every.as_ps());
        (0..count).map(move |n| (peer, n as u32, begin + every * n))
    })
}

/// What left in a slot.
fn left(record: &Record, number: usize) -> Vec<&Seen> {
    let (from, to) = (slot(number), slot(number + 1));
    record.packets(1).filter(|seen| seen.at >= from && seen.at < to).collect()
}

/// What a CNP says, field by field.
fn described(frame: &Frame) -> Result<String, Failure> {
    verify_icrc(&frame.octets)
        .and_then(|()| verify_checksums(&frame.octets))
        .map_err(|e| e.to_string())?;
    let packet = Packet::parse(&frame.octets).map_err(|error| error.to_string())?;
    let packet = packet.ok_or_else(|| "no RoCE".to_owned())?;
    let (dscp, ecn, from, to, port) = match packet.network {
        NetworkHeaders::Ipv4(ip, _, udp) => {
            (ip.dscp, ip.ecn, ip.source.to_string(), ip.destination.to_string(), udp.source_port)
        }
        NetworkHeaders::Ipv6(ip, udp) => {
            (ip.dscp, ip.ecn, ip.source.to_string(), ip.destination.to_string(), udp.source_port)
        }
        NetworkHeaders::Global(_) => return Err(Failure::Failed("a CNP of RoCEv1".to_owned())),
    };
    let (bth, body) = (packet.transport.bth, packet.transport.payload);
    let low = if port < 0xc000 { " below 0xC000" } else { "" };
    Ok(format!(
        "{from} to {to}{low}, DSCP {}, {ecn:?}, QP {:#08x}, PSN {}, B {}, F {}, A {}, P_Key {:#06x}, body {}",
        dscp.get(),
        bth.destination.get(),
        bth.psn,
        u8::from(bth.becn),
        u8::from(bth.fecn),
        u8::from(bth.ack_request),
        bth.partition_key,
        if body == [0; 16] { "16 zeros".to_owned() } else { format!("{body:02x?}") },
    ))
}

/// A CNP and an ACK left in the slot.
fn both(record: &Record, number: usize, what: &str) -> Result<(), Failure> {
    let drawn: Vec<_> =
        left(record, number).into_iter().filter_map(|seen| opcode_of(&seen.frame)).collect();
    let both = [Opcode::ROCEV2_CNP, Opcode::RC_ACKNOWLEDGE];
    let all = drawn.len() == 2 && both.iter().all(|opcode| drawn.contains(opcode));
    ensure(all, || format!("{what} draws {drawn:?}, expected a CNP and an ACK"))
}

/// ROCE-06.
pub fn class_of_cnp(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let sent: Vec<_> =
        left(&record, FIRST).into_iter().filter(|seen| is_cnp(&seen.frame)).collect();
    same("CNPs for a marked packet", sent.len(), 1)?;
    let said = described(&sent[0].frame)?;
    let expected = "DSCP 48, NotCapable, ";
    ensure(said.contains(expected), || format!("the CNP says {said}, expected {expected}"))?;
    ensure(said.contains("B 1, F 0, A 0"), || format!("the CNP says {said}"))?;
    let beside = if on == Level::Live { String::new() } else { in_every_form()? + &beside_data()? };
    let longest = marking::notices_pass(on)?;
    Ok(format!("Not-ECT with DSCP 48; at a switch it waits {} at most{beside}", in_ms(longest)))
}

/// The whole CNP, by version and configured DSCP.
fn in_every_form() -> Result<String, Failure> {
    let rows = [
        ("v2-ipv4", 48, "198.18.0.1 to 198.18.0.2"),
        ("v2-ipv4", 26, "198.18.0.1 to 198.18.0.2"),
        ("v2-ipv6", 40, "2001:db8::1 to 2001:db8::2"),
    ];
    for (version, dscp, ends) in rows {
        let nic = format!("nic = {{ roce = \"{version}\", cnp_dscp = {dscp} }}\n");
        let rest = [roomy(""), nic, dcqcn(""), item("talk", "h1", "messages = 1\nsize = \"64 B\"")];
        let stage = Stage::new(Level::Engine, &star(2, "100 ms", "", &rest.concat()), "h1")?;
        let mut script = Script::default();
        let mark = with_ecn(&roce(2, 1, LOSSLESS, 0), CE);
        script.at(ms(50), move |bed| bed.send_frame(1, &frame(&mark, 256)));
        let record = stage.run(script)?;
        let sent: Vec<_> = record.packets(1).filter(|seen| is_cnp(&seen.frame)).collect();
        same("CNPs for a marked packet", sent.len(), 1)?;
        let expected = format!(
            "{ends}, DSCP {dscp}, NotCapable, QP 0x010001, PSN 0, B 1, F 0, A 0, P_Key 0xffff, body 16 zeros"
        );
        same("the CNP", described(&sent[0].frame)?, expected)?;
    }
    Ok("; field by field in each of 3 forms".to_owned())
}

/// Of a NIC that sends data a CNP waits for the frame on the line, and for nothing if data is paused.
fn beside_data() -> Result<String, Failure> {
    let rest =
        roomy("") + &dcqcn("") + &item("data", "h1", "size = \"2048 B\"\ntransport = \"uc\"");
    let stage = Stage::new(Level::Engine, &star(2, "100 ms", "", &rest), "h1")?;
    let mut script = Script::default();
    let bth =
        Bth { opcode: Opcode::UC_SEND_ONLY, ack_request: false, ..roce(2, 1, LOSSLESS, 0).bth };
    let mark = PacketBuilder { bth, ..with_ecn(&roce(2, 1, LOSSLESS, 0), CE) };
    let mark = frame(&mark, 64);
    let took = mark.line_size().time_at(RATE) + DELAY;
    script.at(ms(60), |bed| bed.pfc(1, 1 << LOSSLESS, LONG));
    let came = [ms(30), ms(80)];
    for at in came {
        let mark = mark.clone();
        script.at(at, move |bed| bed.send_frame(1, &mark));
    }
    let record = stage.run(script)?;
    let notices: Vec<_> = record.packets(1).filter(|seen| is_cnp(&seen.frame)).collect();
    same("CNPs beside data", notices.len(), 2)?;
    let [busy, free] = came.map(|at| at + took);
    let ends = record.data(1, LOSSLESS).map(|seen| seen.at).find(|at| *at >= busy);
    let starts = [0, 1].map(|n| start(notices[n], RATE));
    ensure(Some(starts[0]) == ends && starts[1] == free, || {
        format!("CNPs start at {starts:?}, expected {ends:?} and {free}")
    })?;
    Ok(format!("; behind data of a NIC for one frame, {}", in_ms(starts[0].since(busy))))
}

/// Traffic of one adapter to the next.
fn item(name: &str, from: &str, keys: &str) -> String {
    let to = if from == "h4" { "h3" } else { "h2" };
    format!(
        "[[traffic]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\narrivals = \"backlog\"\n{keys}\n"
    )
}

/// ROCE-07.
pub fn marks_on_answers(on: Level) -> Finding {
    let record = RUN.on(on)?;
    for (number, (what, _, draws)) in answers().into_iter().enumerate() {
        let number = ANSWERS + number;
        if draws {
            both(&record, number, &format!("CE on {what}"))?;
            let acks = left(&record, number).into_iter().filter(|seen| !is_cnp(&seen.frame));
            let codes: Vec<_> = acks.map(|seen| ecn(&seen.frame)).collect();
            ensure(codes == [Ecn::NotCapable], || format!("the ACK says {codes:?}"))?;
        } else {
            same(format!("what CE on {what} draws"), left(&record, number).len(), 0)?;
        }
    }
    same("CNPs obeyed", record.named(1, "rp_cnp_handled"), 1)?;
    Ok("CE on an ACK and on a CNP draws nothing; on data it draws a CNP beside the ACK, which says Not-ECT"
        .to_owned())
}

/// ROCE-08.
pub fn pacing(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let begin = pacing_time(on).0;
    let took = frame(&roce(PACED[0], OWN, LOSSLESS, 0), PAYLOAD).line_size().time_at(RATE);
    let mut told = Vec::new();
    for peer in PACED {
        let here = record.between(1, begin, Instant::NEVER).filter(|seen| is_cnp(&seen.frame));
        let found: Vec<Instant> = here
            .filter(|seen| u16::from(seen.frame.octets[5]) == peer)
            .map(|seen| seen.at)
            .collect();
        let mut due: Vec<Instant> = Vec::new();
        let marks = pacing_marks(on).filter(|(from, ..)| *from == peer);
        for at in marks.map(|(.., when)| when + took + DELAY + CNP_TIME) {
            if due.last().is_none_or(|last| at.since(*last) >= INTERVAL) {
                due.push(at);
            }
        }
        let within = record.within(us(100));
        let exact = found.len() == due.len()
            && found.iter().zip(&due).all(|(found, due)| apart(*found, *due) <= within);
        ensure(exact, || format!("CNPs of adapter {peer} leave at {found:?}, expected {due:?}"))?;
        told.push(format!("{} for marks {} apart", found.len(), in_ms(PACING_EVERY[told.len()])));
    }
    let marks = 4 + pacing_marks(on).count() as u64;
    same("marks counted", record.named(1, "np_ecn_marked_roce_packets"), marks)?;
    Ok(format!("N = {}: CNPs in a second: {}", in_ms(INTERVAL), told.join(", ")))
}

/// What was refused of `case`, each alone and for its reason, without an answer; how many.
fn judge(on: Level, case: &str, good: usize) -> Result<usize, Failure> {
    let record = RUN.on(on)?;
    let mut count = 0;
    for (number, (of, what, _, reason)) in refused(on).into_iter().enumerate() {
        if of != case {
            continue;
        }
        let number = REFUSED + number;
        let lost = record.dropped(1, slot(number), slot(number + 1));
        let lost: Vec<_> = lost.iter().map(|reason| reason.name()).collect();
        ensure(lost == [reason], || format!("{what} is lost for {lost:?}, not {reason}"))?;
        same(format!("answers to a packet {what}"), left(&record, number).len(), 0)?;
        count += 1;
    }
    both(&record, goods(on) + good, "a good packet afterwards")?;
    Ok(count)
}

/// ROCE-15.
pub fn bad_icrc(on: Level) -> Finding {
    let count = judge(on, "ROCE-15", 0)?;
    Ok(format!("{count} packets with a bit flipped: as many icrc drops, no CNP, no ACK"))
}

/// ROCE-16.
pub fn not_roce(on: Level) -> Finding {
    let count = judge(on, "ROCE-16", 1)?;
    let at_switch = marking::not_roce(on)?;
    same("kinds at the switch", at_switch, count)?;
    Ok(format!("{count} kinds: each lost at a NIC for its reason, without a CNP"))
}
