//! QCN-03, QCN-05 and QCN-12: a switch whose queues are sampled with nearly every frame, and the messages
//! that its neighbours receive.

use super::{qcn, star};
use crate::ethernet::LONG;
use crate::prelude::*;
use proto::wire::ethernet::{MacAddress, plan};
use testbed::frames::congestion::{CNM, CNPV, Message, message, opinion, sent};

/// Sampled at least every 1.4 KB, and always above the set point.
const EAGER: &str = "cp_q_sp = \"100 B\"\ncp_sample_base = \"10 KB\"";

static NAMED: [Shared<Record>; 2] = [Shared::new(named), Shared::new(named)];

/// The port whose queue stands, and a priority outside the domain of [`SAMPLED`].
const OUT: u8 = 4;
const OTHER: u8 = 5;
/// Octets of a frame without FCS: 0.8 ms on the line.
const LENGTH: usize = 1_000;
/// So many frames a source.
const COUNT: u32 = 30;

/// When two sources send on the CNPV and on another priority in turn, one after the other (or samples keep
/// step with one of them), and a third on the latter alone.
const MIXED: Instant = ms(100);
const TURNS: [(u8, Instant); 2] = [(1, MIXED), (2, ms(160))];
/// When messages come as data, and when data from an address of a group does.
const MESSAGES: Instant = ms(300);
const GROUP: Instant = ms(360);
/// When the CNPV of port 1 is paused, when its queue fills while messages about another one reach it, when it is opened
/// and more messages come.
const SHUT: Instant = ms(420);
const FILL: Instant = ms(430);
const OPEN: Instant = ms(500);

/// The address of a port of the switch, which has the first number after those of the adapters.
fn address(port: u8) -> MacAddress {
    plan::port_mac(Lid::new(u16::from(OUT) + 1), PortNumber::from_index(usize::from(port) - 1))
}

/// Frames of `pcp` from the neighbour at `from` to adapter `to`, as its line permits.
fn press(bed: &mut dyn Bed, (from, to): (u8, u8), pcp: u8, count: u32) {
    for _ in 0..count {
        bed.enqueue(from, sent(from.into(), to, pcp, LENGTH).octets);
    }
}

static SAMPLED: Shared<Record> = Shared::new(|on| {
    let domain = format!("cnpv = [{CNPV}], cnm_priority = {CNM}");
    play(on, &star(OUT, "700 ms", &domain, &qcn(EAGER)), "s0", |script| {
        for (from, at) in TURNS {
            script.at(at, move |bed| {
                for _ in 0..COUNT {
                    press(bed, (from, OUT), CNPV, 1);
                    press(bed, (from, OUT), OTHER, 1);
                }
            });
        }
        script.at(MIXED, |bed| press(bed, (3, OUT), OTHER, 2 * COUNT));
        script.at(MESSAGES, |bed| {
            let cnm = opinion(address(OUT), OUT.into());
            let from = plan::mac(Lid::new(1));
            for _ in 0..COUNT {
                bed.enqueue(1, message(cnm, (from, OUT.into()), CNPV, LENGTH).octets);
            }
        });
        script.at(GROUP, |bed| {
            for _ in 0..COUNT {
                let mut group = sent(1, OUT, CNPV, LENGTH);
                group.octets[6] |= 1;
                bed.enqueue(1, group.octets);
            }
        });
        script.at(SHUT, |bed| bed.pfc(1, 1 << CNPV, LONG));
        script.at(FILL, |bed| {
            press(bed, (3, 1), CNPV, COUNT);
            press(bed, (1, OUT), CNPV, COUNT);
        });
        script.at(OPEN, |bed| {
            bed.pfc(1, 1 << CNPV, 0);
            press(bed, (1, OUT), CNPV, COUNT);
        });
    })
});

/// The messages that left `port` in `[from, to)`, each with what all have in common; and when they did.
fn cnms(record: &Record, port: u8, from: Instant, to: Instant) -> Result<Vec<(Instant, Message)>> {
    let mut all = Vec::new();
    for seen in record.packets(port).within((from, to)) {
        if let Some(message) = Message::of(&seen.frame)? {
            let header = message.preface.envelope.header;
            same("DA", header.destination, plan::mac(Lid::new(port.into())))?;
            let pcp = message.preface.envelope.tag.map_or(0, |tag| tag.priority.get());
            same("the priority of a message", pcp, CNM)?;
            all.push((seen.at, message));
        }
    }
    Ok(all)
}

/// QCN-03.
pub fn only_controlled(on: Level) -> Finding {
    let record = SAMPLED.on(on)?;
    let mut total = 0;
    for port in [1, 2] {
        let here = cnms(&record, port, MIXED, MESSAGES)?;
        ensure!(here.len() > 5, "adapter {port} receives {} messages", here.len());
        for (_, Message { preface, cnm }) in &here {
            same("SA", preface.envelope.header.source, address(OUT))?;
            same("priority of what is sampled", cnm.encapsulated_priority.get(), CNPV)?;
            let to = cnm.encapsulated_destination;
            same("DA of what is sampled", to, plan::mac(Lid::new(OUT.into())))?;
        }
        total += here.len();
    }
    let counted = record.named(OUT, &format!("queue{CNPV}_cp_transmitted_cnms"));
    let all = [1, 2].map(|port| cnms(&record, port, Instant::ZERO, Instant::NEVER));
    let [one, other] = all;
    same("messages counted as transmitted", counted, (one?.len() + other?.len()) as u64)?;
    same("messages to a source of priority 5", cnms(&record, 3, MIXED, FILL)?.len(), 0)?;
    let passed = record.packets(OUT).filter(|seen| seen.at < GROUP);
    same("frames that reach the queue", passed.count(), 7 * COUNT as usize)?;
    for (what, from, to) in [("messages", MESSAGES, GROUP), ("frames of groups", GROUP, SHUT)] {
        for port in 1..OUT {
            same(format!("messages about {what}"), cnms(&record, port, from, to)?.len(), 0)?;
        }
    }
    record.nothing_lost(&[])?;
    Ok(format!("{total} messages to those whose frames were sampled; to no other source"))
}

/// QCN-12.
pub fn priority_of_messages(on: Level) -> Finding {
    let record = SAMPLED.on(on)?;
    let mut data = Vec::new();
    for seen in record.packets(1).filter(|seen| seen.at >= SHUT) {
        if Message::of(&seen.frame)?.is_none() {
            data.push(seen.at);
        }
    }
    same("frames that leave the queue", data.len(), COUNT as usize)?;
    same("frames that pass the pause", data.iter().filter(|at| **at < OPEN).count(), 0)?;
    let past = cnms(&record, 1, SHUT, OPEN)?.len();
    ensure!(past > 5, "{past} messages while data was paused");
    // Opened, the queue is still long when the first of these messages leave.
    let last = data.last().copied().unwrap_or(OPEN);
    let between = cnms(&record, 1, OPEN, last)?.len();
    ensure!(between > 3, "{between} messages while the queue was sent");
    Ok(format!("{past} messages past {COUNT} frames that are paused, {between} between others"))
}

/// Queues that stand one after the other: port, priority and when.
const QUEUES: [(u8, u8, Instant); 4] =
    [(3, CNPV, ms(100)), (3, OTHER, ms(160)), (OUT, CNPV, ms(220)), (OUT, OTHER, ms(280))];

fn named(on: Level) -> Result<Record> {
    let domain = format!("cnpv = [{CNPV}, {OTHER}], cnm_priority = {CNM}");
    play(on, &star(OUT, "400 ms", &domain, &qcn(EAGER)), "s0", |script| {
        for (port, priority, at) in QUEUES {
            script.at(at, move |bed| {
                [1, 2].into_iter().for_each(|from| press(bed, (from, port), priority, COUNT));
            });
        }
    })
}

/// The name under which each queue was reported, by port and priority.
fn names(record: &Record) -> Result<BTreeMap<(u8, u8), u64>> {
    let mut names = BTreeMap::new();
    for source in [1, 2] {
        for (_, Message { cnm, .. }) in cnms(record, source, Instant::ZERO, Instant::NEVER)? {
            let port = plan::adapter_of_mac(cnm.encapsulated_destination).map_or(0, Lid::get);
            let queue = (port as u8, cnm.encapsulated_priority.get());
            let name = *names.entry(queue).or_insert(cnm.cpid);
            same(format!("CPID of {queue:?}"), cnm.cpid, name)?;
        }
    }
    Ok(names)
}

/// QCN-05.
pub fn cpid(on: Level) -> Finding {
    let [first, again] = &NAMED;
    let first = names(&*first.on(on)?)?;
    let expected = QUEUES.map(|(port, priority, _)| {
        ((port, priority), address(port).number() << 16 | u64::from(priority))
    });
    ensure!(first == BTreeMap::from(expected), "{first:x?}, expected {expected:x?}");
    let again = names(&*again.on(on)?)?;
    ensure!(first == again, "{first:x?}, after a restart {again:x?}");
    Ok("port address and priority: four points, four names, the same of a second daemon".into())
}
