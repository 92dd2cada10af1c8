//! ROCE-06 to ROCE-08, ROCE-15 and ROCE-16: what a NIC returns for marks, and what it refuses. Each case
//! has a peer of its own among the played adapters.

use super::marking;
use crate::ethernet::*;
use crate::odd::{CE, OWN, PAYLOAD, odd};
use crate::prelude::*;
use crate::stimulus::{Expected, Stimulus, judge, schedule, slot, slot_time};
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{NetworkHeaders, Packet, PacketBuilder};
use testbed::frames::ethernet::{CNP, blank, ecn, frame, is_cnp, opcode, roce, with_ecn};

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

/// A key of traffic by UC.
const UC: &str = "transport = \"uc\"";

/// Data with CE from adapter `from`.
fn marked(from: u16, psn: u32) -> Frame {
    frame(&with_ecn(&roce(from, OWN, LOSSLESS, psn), CE), PAYLOAD)
}

/// What comes in slots: packets with CE, packets that must be refused, and good packets after them.
fn stimuli(on: Level) -> Vec<Stimulus> {
    let mut all = Vec::new();
    let mut add = |case, what: &str, frame: Frame, expected| {
        all.push(Stimulus::new(case, what, frame.octets, expected));
    };
    let drawn = || Expected::Draws(vec![Opcode::ROCEV2_CNP, Opcode::RC_ACKNOWLEDGE]);
    add("ROCE-06", "data with CE", marked(MARKS, 0), drawn());
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 2 });
    let plain = with_ecn(&roce(TALKS, OWN, LOSSLESS, 1), CE);
    let ack = PacketBuilder {
        bth: Bth { opcode: Opcode::RC_ACKNOWLEDGE, ack_request: false, ..plain.bth },
        extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE },
        ..plain
    };
    let bth = Bth { opcode: Opcode::ROCEV2_CNP, becn: true, ack_request: false, ..plain.bth };
    let notice = PacketBuilder { bth, ..with_ecn(&roce(TALKS, OWN, CNP, 0), CE) };
    add("ROCE-07", "an ACK with CE", frame(&ack, 0), Expected::Taken);
    add("ROCE-07", "a CNP with CE", blank(&notice, 16), Expected::Taken);
    add("ROCE-07", "data with CE", marked(TALKS, 0), drawn());
    let good = marked(DAMAGED, 0);
    let end = good.octets.len();
    // Each bit of payload and ICRC; live a few of them.
    let step = if on == Level::Live { 65 } else { 1 };
    for bit in ((end - PAYLOAD - 4) * 8..end * 8).step_by(step) {
        let mut bad = good.clone();
        bad.octets[bit / 8] ^= 0x80 >> (bit % 8);
        add("ROCE-15", &format!("bit {bit} flipped"), bad, Expected::Lost(DropReason::Icrc));
    }
    for odd in odd() {
        add("ROCE-16", odd.what, odd.frame, Expected::Lost(odd.at_nic));
    }
    add("ROCE-15", "a good packet afterwards", good, drawn());
    add("ROCE-16", "a good packet afterwards", marked(1, 0), drawn());
    all
}

/// How far apart marks come on the packets of two queue pairs.
const PACING_EVERY: [Duration; 2] = [us(3_000), us(7_000)];

/// From when until when they do.
fn pacing_time(on: Level) -> (Instant, Instant) {
    let from = slot(stimuli(on).len()) + us(100_000);
    (from, from + us(1_000_000))
}

fn run(on: Level) -> Result<Record> {
    let rest = [
        roomy(""),
        dcqcn("cnp_interval = \"20 ms\""),
        item("talk", "h4", "messages = 2\nsize = \"256 B\"\nstart = \"120 ms\""),
        item("class", "h4", &format!("{UC}\nmessages = 1\nsize = \"64 B\"\nstart = \"100 ms\"")),
    ];
    let duration = format!("{} us", pacing_time(on).1.as_ps() / 1_000_000 + 100_000);
    play(on, &star(6, &duration, "", &rest.concat()), "h4", |script| {
        schedule(script, &stimuli(on));
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
    })
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

/// The fields of a CNP as text.
fn described(frame: &Frame) -> Result<String> {
    verify_icrc(&frame.octets).and_then(|()| verify_checksums(&frame.octets))?;
    let packet = Packet::parse(&frame.octets)?.ok_or("no RoCE")?;
    let (dscp, ecn, ends, port) = match packet.network {
        NetworkHeaders::Ipv4(ip, _, udp) => {
            (ip.dscp, ip.ecn, format!("{} to {}", ip.source, ip.destination), udp.source_port)
        }
        NetworkHeaders::Ipv6(ip, udp) => {
            (ip.dscp, ip.ecn, format!("{} to {}", ip.source, ip.destination), udp.source_port)
        }
        NetworkHeaders::Global(_) => bail!("a CNP of RoCEv1"),
    };
    let (bth, body) = (packet.transport.bth, packet.transport.payload);
    let low = if port < 0xc000 { " below 0xC000" } else { "" };
    Ok(format!(
        "{ends}{low}, DSCP {}, {ecn:?}, QP {:#08x}, PSN {}, B {}, F {}, A {}, P_Key {:#06x}, body {}",
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

/// ROCE-06.
pub fn class_of_cnp(on: Level) -> Finding {
    let record = RUN.on(on)?;
    judge("ROCE-06", &stimuli(on), &record)?;
    let mut sent = record.packets(1).within(slot_time(0)).that(is_cnp);
    let sent = sent.next().ok_or("no CNP")?;
    let text = described(&sent.frame)?;
    let expected = "DSCP 48, NotCapable, ";
    ensure!(text.contains(expected), "the CNP has {text}, expected {expected}");
    ensure!(text.contains("B 1, F 0, A 0"), "the CNP has {text}");
    let beside = if on == Level::Live { String::new() } else { in_every_form()? + &beside_data()? };
    let longest = marking::notices_pass(on)?;
    Ok(format!("Not-ECT with DSCP 48; at a switch it waits {} at most{beside}", in_ms(longest)))
}

/// The whole CNP, by version and configured DSCP.
fn in_every_form() -> Result<String> {
    let rows = [
        ("v2-ipv4", 48, "198.18.0.1 to 198.18.0.2"),
        ("v2-ipv4", 26, "198.18.0.1 to 198.18.0.2"),
        ("v2-ipv6", 40, "2001:db8::1 to 2001:db8::2"),
    ];
    for (version, dscp, ends) in rows {
        let nic = format!("nic = {{ roce = \"{version}\", cnp_dscp = {dscp} }}\n");
        let rest = [roomy(""), nic, dcqcn(""), item("talk", "h1", "messages = 1\nsize = \"64 B\"")];
        let mark = with_ecn(&roce(2, 1, LOSSLESS, 0), CE);
        let text = star(2, "100 ms", "", &rest.concat());
        let record = play(Level::Engine, &text, "h1", |script| {
            script.at(ms(50), move |bed| bed.send_frame(1, &frame(&mark, 256)));
        })?;
        let sent: Vec<_> = record.packets(1).that(is_cnp).collect();
        same("CNPs for a marked packet", sent.len(), 1)?;
        let expected = format!(
            "{ends}, DSCP {dscp}, NotCapable, QP 0x010001, PSN 0, B 1, F 0, A 0, P_Key 0xffff, body 16 zeros"
        );
        same("the CNP", described(&sent[0].frame)?, expected)?;
    }
    Ok("; field by field in each of 3 forms".into())
}

/// Of a NIC that sends data a CNP waits for the frame on the line, and for nothing if data is paused.
fn beside_data() -> Result<String> {
    let rest = roomy("") + &dcqcn("") + &item("data", "h1", &format!("size = \"2048 B\"\n{UC}"));
    let bth =
        Bth { opcode: Opcode::UC_SEND_ONLY, ack_request: false, ..roce(2, 1, LOSSLESS, 0).bth };
    let mark = PacketBuilder { bth, ..with_ecn(&roce(2, 1, LOSSLESS, 0), CE) };
    let mark = frame(&mark, 64);
    let took = mark.line_size().time_at(RATE) + DELAY;
    let came = [ms(30), ms(80)];
    let record = play(Level::Engine, &star(2, "100 ms", "", &rest), "h1", |script| {
        script.at(ms(60), |bed| bed.pfc(1, 1 << LOSSLESS, LONG));
        script.every(came[0], us(50_000), 2, move |bed, _| bed.send_frame(1, &mark));
    })?;
    let notices: Vec<_> = record.packets(1).that(is_cnp).collect();
    same("CNPs beside data", notices.len(), 2)?;
    let [busy, free] = came.map(|at| at + took);
    let ends = record.data(1, LOSSLESS).map(|seen| seen.at).find(|at| *at >= busy);
    let starts = [0, 1].map(|n| notices[n].start(RATE));
    same("starts of CNPs", starts.map(Some), [ends, Some(free)])?;
    Ok(format!("; behind data of a NIC for one frame, {}", in_ms(starts[0].since(busy))))
}

/// Traffic of one adapter to the next.
fn item(name: &str, from: &str, keys: &str) -> String {
    let to = if from == "h4" { "h3" } else { "h2" };
    traffic(name, from, to, &format!("arrivals = \"backlog\"\n{keys}"))
}

/// ROCE-07.
pub fn marks_on_answers(on: Level) -> Finding {
    let record = RUN.on(on)?;
    judge("ROCE-07", &stimuli(on), &record)?;
    let acks = record.packets(1).that(|frame| opcode(frame) == Some(Opcode::RC_ACKNOWLEDGE));
    let codes: Vec<_> = acks.map(|seen| ecn(&seen.frame)).collect();
    same("ECN of ACKs", codes.iter().all(|code| *code == Ecn::NotCapable), true)?;
    same("CNPs obeyed", record.named(1, "rp_cnp_handled"), 1)?;
    Ok("CE on an ACK and on a CNP draws nothing; on data it draws a CNP beside the ACK, which carries Not-ECT".into())
}

/// ROCE-08.
pub fn pacing(on: Level) -> Finding {
    let record = RUN.on(on)?;
    let begin = pacing_time(on).0;
    let took = frame(&roce(PACED[0], OWN, LOSSLESS, 0), PAYLOAD).line_size().time_at(RATE);
    let mut all = Vec::new();
    for peer in PACED {
        let here = record.packets(1).since(begin).that(is_cnp);
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
        ensure!(exact, "CNPs of adapter {peer} leave at {found:?}, expected {due:?}");
        all.push(format!("{} for marks {} apart", found.len(), in_ms(PACING_EVERY[all.len()])));
    }
    let marks = 4 + pacing_marks(on).count() as u64;
    same("marks counted", record.named(1, "np_ecn_marked_roce_packets"), marks)?;
    Ok(format!("N = {}: CNPs in a second: {}", in_ms(INTERVAL), all.join(", ")))
}

/// ROCE-15.
pub fn bad_icrc(on: Level) -> Finding {
    let count = judge("ROCE-15", &stimuli(on), &*RUN.on(on)?)? - 1;
    Ok(format!("{count} packets with a bit flipped: as many icrc drops, no CNP, no ACK"))
}

/// ROCE-16.
pub fn not_roce(on: Level) -> Finding {
    let count = judge("ROCE-16", &stimuli(on), &*RUN.on(on)?)? - 1;
    let at_switch = marking::not_roce(on)?;
    same("kinds at the switch", at_switch, count)?;
    Ok(format!("{count} kinds: each lost at a NIC for its reason, without a CNP"))
}
