//! PFC-25, ROCE-17, IBFC-14 and IBCC-17: no frame starts before the line is free, in a pause or without credit, while pauses,
//! credits, notifications and timers change what is permitted all the time.
//!
//! What the neighbours saw is judged alone, so it does not matter why a device believes that a frame may leave. Instants are
//! the device's own stamps, so spans are exact on every level; a pause that a daemon reads late begins for it when it is read.

use crate::ethernet::*;
use crate::prelude::*;
use proto::link::pause::quanta;
use testbed::frames::ethernet::{cnp, data};
use testbed::frames::infiniband::Packet;

/// What surrounds the device: nothing in the cases, a fault in tests.
type Wrap = fn(Box<dyn Device>) -> Box<dyn Device>;

/// PFC-25.
pub fn ethernet_switch(on: Level) -> Finding {
    two_to_one(on, |device| device)
}

/// ROCE-17.
pub fn ethernet_nic(on: Level) -> Finding {
    notified(on, |device| device)
}

/// IBFC-14.
pub fn infiniband_switch(on: Level) -> Finding {
    credited(on, |device| device)
}

/// IBCC-17.
pub fn infiniband_nic(on: Level) -> Finding {
    indexed(on, |device| device)
}

/// When what changes begins, how often it changes, and how many times: no multiple of a frame's time.
const CHANGES: (Instant, Duration, u64) = (ms(100), us(7_310), 150);

/// The number `n` of a sequence without a pattern.
fn odd(n: u64) -> u64 {
    (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Holds if no frame of `port` starts before the one before it has left; how many there were.
fn one_by_one(record: &Record, port: u8) -> Result<usize> {
    let sent = OnLine::all(record.line(port), RATE);
    for (index, pair) in sent.windows(2).enumerate() {
        let (before, start) = (pair[0].end, pair[1].start);
        let number = index + 2;
        ensure!(
            start >= before,
            "frame {number} of port {port} starts at {start}, the one before leaves at {before}"
        );
    }
    Ok(sent.len())
}

/// The pauses that the neighbour at the port sends: from its arrival on, and when it ends by itself.
fn pauses() -> impl Iterator<Item = (Instant, Instant)> {
    let (first, every, count) = CHANGES;
    let arrival = move |n| first + every * n + CONTROL_TIME + DELAY;
    (0..count).map(move |n| {
        let end = arrival(n) + quanta(length(n), RATE);
        (arrival(n), if n + 1 < count { end.min(arrival(n + 1)) } else { end })
    })
}

/// Quanta of pause `n`, up to twice the time to the next; every fourth ends the one before.
fn length(n: u64) -> u16 {
    if n % 4 == 3 { 0 } else { (odd(n) % 280) as u16 }
}

/// Holds if no frame of the lossless priority starts in a pause; how many frames there were.
fn none_in_a_pause(record: &Record, port: u8) -> Result<usize> {
    let starts = record.data(port, LOSSLESS).starts(RATE);
    for (from, to) in pauses() {
        let read = from + record.twice_late();
        let early = starts.iter().find(|start| **start >= read && **start < to);
        ensure!(
            early.is_none(),
            "port {port}: a frame starts at {early:?} in a pause from {from} to {to}"
        );
    }
    Ok(starts.len())
}

/// The neighbour at `port` pauses the lossless priority again and again.
fn paused(script: &mut Script, port: u8) {
    let (first, every, count) = CHANGES;
    script.every(first, every, count, move |bed, n| bed.pfc(port, 1 << LOSSLESS, length(n)));
}

/// A switch sends what comes by two ports, on two priorities, to a third that is paused.
fn two_to_one(on: Level, wrap: Wrap) -> Finding {
    const EACH: u32 = 300;
    let stage = Stage { wrap, ..Stage::new(on, &star(3, "1400 ms", "", &roomy("")), "s0")? };
    let record = stage.play(|script| {
        paused(script, 3);
        script.at(ms(100), |bed| {
            for (port, priority) in [(1, LOSSLESS), (2, 1)] {
                bed.queue(port, &mut (0..EACH).map(move |psn| data(port.into(), 3, priority, psn)));
            }
        });
    })?;
    let (all, lossless) = (one_by_one(&record, 3)?, none_in_a_pause(&record, 3)?);
    ensure!(all > 500 && lossless > 100, "{all} frames, {lossless} of them lossless: too few");
    Ok(format!("{all} frames one by one, {lossless} of them between {} pauses", CHANGES.2))
}

/// A NIC whose rate falls and rises by CNPs, by a timer and by octets, while one of its priorities is paused.
fn notified(on: Level, wrap: Wrap) -> Finding {
    let params = "profile = \"cx\"\nrate_min = \"0.1 Mbps\"\nalpha_interval = \"2 ms\"\ncut_period = \"3 ms\"\n\
                  time_reset = \"5 ms\"\nbyte_reset = \"20 KB\"\nstages = 1\nrate_ai = \"2 Mbps\"\nrate_hai = \"5 Mbps\"";
    let rest = roomy("")
        + &dcqcn(params)
        + &backlog("one", "h1", "h2", "sl = 3\nstart = \"50 ms\"")
        + &backlog("two", "h1", "h2", "sl = 1\nstart = \"50 ms\"");
    let stage = Stage { wrap, ..Stage::new(on, &star(2, "1400 ms", "", &rest), "h1")? };
    let record = stage.play(|script| {
        paused(script, 1);
        let (first, every, count) = CHANGES;
        script.every(first + us(2_430), every, count / 8, |bed, n| {
            (0..1 + odd(n) % 6).for_each(|_| bed.send_frame(1, &cnp(2, 1)));
        });
    })?;
    let (all, lossless) = (one_by_one(&record, 1)?, none_in_a_pause(&record, 1)?);
    ensure!(all > 200 && lossless > 50, "{all} frames, {lossless} of them lossless: too few");
    Ok(format!("{all} frames one by one, {lossless} of them between {} pauses", CHANGES.2))
}

/// The neighbour at `port` offers as much as up to four full frames, again and again.
fn offers(script: &mut Script, port: u8) {
    let (first, every, count) = CHANGES;
    script.every(first, every, count, move |bed, n| bed.offer(port, 0, (odd(n) % 140) as u16));
}

/// Holds if every packet of `port` was within what its neighbour had offered, and alone on the line; how many there were.
fn within_credit(record: &Record, port: u8) -> Result<usize> {
    let lanes = record.neighbours[usize::from(port) - 1].lanes();
    let beyond: u32 = lanes.iter().map(|lane| lane.overruns).sum();
    same(format!("packets of port {port} beyond its credit"), beyond, 0)?;
    let packets = record.packets(port).count();
    ensure!(packets > 100, "{packets} packets: too few");
    one_by_one(record, port)
}

/// A switch sends what comes by two ports to a third that gives credit by and by.
fn credited(on: Level, wrap: Wrap) -> Finding {
    const EACH: u32 = 200;
    let text = crate::star::star(3, "1400 ms", "", "switch = { buffer = \"72 mtu\" }\n");
    let stage = Stage { wrap, ..Stage::new(on, &text, "s0")? };
    let record = stage.play(|script| {
        offers(script, 3);
        script.at(ms(100), |bed| {
            for port in [1, 2] {
                bed.queue(
                    port,
                    &mut (0..EACH).map(move |psn| Packet::new(port.into(), 3, psn).frame()),
                );
            }
        });
    })?;
    let all = within_credit(&record, 3)?;
    Ok(format!("{all} packets and link packets one by one, within {} offers", CHANGES.2))
}

/// A NIC whose index rises by BECNs and falls by its timer, while its neighbour gives credit by and by.
fn indexed(on: Level, wrap: Wrap) -> Finding {
    let rest = "switch = { buffer = \"72 mtu\" }\n".to_owned()
        + &backlog("one", "h1", "h2", "start = \"50 ms\"")
        + "[scheme]\nkind = \"ib-cca\"\nccti_increase = 4\nccti_timer = 2000\n";
    let stage =
        Stage { wrap, ..Stage::new(on, &crate::star::star(2, "1400 ms", "", &rest), "h1")? };
    let record = stage.play(|script| {
        offers(script, 1);
        let (first, every, count) = CHANGES;
        script.every(first + us(2_430), every, count / 8, |bed, n| {
            let becn = Packet { payload: 16, ..Packet::cnp(2, 1) }.frame();
            (0..1 + odd(n) % 6).for_each(|_| bed.send_frame(1, &becn));
        });
    })?;
    let all = within_credit(&record, 1)?;
    Ok(format!("{all} packets and link packets one by one, within {} offers", CHANGES.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testbed::frames::ethernet::control_of;
    use testbed::{credulous, deaf, hasty};

    fn fails(found: Finding, why: &str) {
        let Err(Failure::Failed(text)) = found else { panic!("{why}: {found:?}") };
        assert!(text.contains(why), "{text}");
    }

    #[test]
    fn a_device_whose_frames_overlap_by_a_nanosecond_fails_every_case() {
        let wrap: Wrap = |device| hasty(device, Duration::from_ns(1));
        for case in [two_to_one, notified, credited, indexed] {
            fails(case(Level::Engine, wrap), "the one before leaves at");
        }
    }

    #[test]
    fn a_device_that_misses_one_pause_in_ten_or_takes_more_credit_than_it_gets_fails() {
        let wrap: Wrap = |device| {
            let mut heard = 0;
            deaf(
                device,
                Box::new(move |_, frame| {
                    heard += u32::from(control_of(frame).is_some());
                    heard % 10 == 5 && control_of(frame).is_some()
                }),
            )
        };
        fails(two_to_one(Level::Engine, wrap), "in a pause");
        fails(notified(Level::Engine, wrap), "in a pause");
        let wrap: Wrap = |device| credulous(device, 33);
        fails(credited(Level::Engine, wrap), "beyond its credit");
        fails(indexed(Level::Engine, wrap), "beyond its credit");
    }
}
