//! QOS-03 to QOS-05 live: who gets how much of a line for which several classes wait.

use crate::bench::packets::ethernet::{frame, priority, roce};
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{LONG, OCTET, roomy, star};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::{Script, Tester};
use crate::live::{ms, us};
use proto::units::{Duration, Instant};

static WEIGHTED: Cached<Record> = Cached::new(weighted, |record| record.fidelity.ok);
static STRICT: Cached<Record> = Cached::new(strict, |record| record.fidelity.ok);
static IDLE: Cached<Record> = Cached::new(idle, |record| record.fidelity.ok);

/// A frame is 318 octets, DA to FCS.
const PAYLOAD: usize = 256;
const SIZE: u64 = 318;
const TIME: Duration = Duration::from_ps(OCTET.as_ps() * SIZE);
/// When ways out are shut, when frames come, and when they may go.
const SHUT: Instant = ms(100);
const COME: Instant = ms(110);
const OPEN: Instant = ms(330);

/// `count` frames of `of` from the neighbour at `from` to adapter `to`.
fn wait(tester: &mut Tester, (from, to): (u8, u8), of: u8, count: u32) {
    for psn in 0..count {
        tester.enqueue(from, frame(&roce(from.into(), to.into(), of, psn), PAYLOAD).octets);
    }
}

/// The priorities of what left by `port`, in order.
fn order(record: &Record, port: u8, from: Instant) -> Vec<u8> {
    let left = record.packets(port).filter(|seen| seen.at >= from);
    left.filter_map(|seen| priority(&seen.frame)).collect()
}

fn count(order: &[u8], of: u8) -> usize {
    order.iter().filter(|priority| **priority == of).count()
}

/// How many frames leave until one of the priorities has gone.
fn until_one_has_gone(order: &[u8], priorities: &[u8]) -> usize {
    let last = |of: &u8| order.iter().rposition(|priority| priority == of).map_or(0, |at| at + 1);
    priorities.iter().map(last).min().unwrap_or(0)
}

/// Source: qos_params.td3.yaml, wrr.
const WEIGHTS: [usize; 7] = [14, 14, 14, 15, 15, 14, 14];

fn weighted() -> Result<Record, Failure> {
    let link = "scheduling = [14, 14, 14, 15, 15, 14, 14, 1]";
    let stage = Stage::new(&star(4, "700 ms", link, &roomy("")), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| tester.pfc(4, 0xff, LONG));
    script.at(COME, |tester| {
        for (of, weight) in (0u8..).zip(WEIGHTS) {
            wait(tester, (1 + of % 3, 4), of, weight as u32 * 10);
        }
    });
    script.at(OPEN, |tester| tester.pfc(4, 0xff, 0));
    stage.run(script)
}

/// QOS-03.
pub fn dwrr_shares() -> Finding {
    const LEFT_MAX: usize = 80;
    let record = WEIGHTED.get()?;
    let record = record.trusted()?;
    let order = order(record, 4, SHUT);
    same("frames that leave", order.len(), WEIGHTS.iter().sum::<usize>() * 10)?;
    let all = until_one_has_gone(&order, &[0, 1, 2, 3, 4, 5, 6]);
    let left = order.len() - all;
    ensure(left < LEFT_MAX, || format!("{left} of 1000 frames are left when a queue drains"))?;
    // Every hundred frames show the weights.
    for (from, stretch) in order[..all].chunks_exact(100).enumerate() {
        for (of, weight) in (0u8..).zip(WEIGHTS) {
            let found = count(stretch, of);
            ensure(found.abs_diff(weight) <= weight * 15 / 100 + 1, || {
                format!("of frames {from}00 on, {found} in a hundred are of priority {of}")
            })?;
        }
    }
    record.nothing_lost(&[])?;
    Ok(format!(
        "7 queues of 140 or 150 frames by 14 or 15: {left} of 1000 left when the first drains"
    ))
}

/// When and how many strict frames come beside a backlog: first all at once, then two in five.
const STRICT_COUNT: u32 = 200;
const STRICT_EVERY: Duration = Duration::from_ps(TIME.as_ps() * 5 / 2);
const LATER: Instant = ms(430);

fn strict() -> Result<Record, Failure> {
    let link = "scheduling = [1, 2, 3, 1, 1, 1, 1, \"strict\"]";
    let stage = Stage::new(&star(5, "900 ms", link, &roomy("")), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| tester.pfc(4, 0xff, LONG));
    script.at(COME, |tester| {
        (0..3).for_each(|of| wait(tester, (1 + of, 4), of, 600));
        wait(tester, (5, 4), 7, STRICT_COUNT);
    });
    script.at(OPEN, |tester| tester.pfc(4, 0xff, 0));
    for number in 0..STRICT_COUNT {
        let at = LATER + STRICT_EVERY * u64::from(number);
        script.at(at, |tester| {
            tester.send_frame(5, &frame(&roce(5, 4, 7, 0), PAYLOAD));
        });
    }
    stage.run(script)
}

/// QOS-04.
pub fn strict_priority() -> Finding {
    let record = STRICT.get()?;
    let record = record.trusted()?;
    let all = order(record, 4, SHUT);
    let first = &all[..all.len().min(STRICT_COUNT as usize)];
    let strict = count(first, 7) * 1_000 / first.len().max(1);
    ensure(strict > 950, || format!("a strict backlog has {strict} ‰ of the line"))?;
    let (from, to) = (LATER + us(10_000), LATER + STRICT_EVERY * u64::from(STRICT_COUNT));
    let here = record.packets(4).filter(|seen| seen.at >= from && seen.at < to);
    let here: Vec<u8> = here.filter_map(|seen| priority(&seen.frame)).collect();
    let line = (to.since(from).as_ps() / TIME.as_ps()) as usize;
    ensure(here.len() * 100 >= line * 97, || format!("{} frames of {line}: idle", here.len()))?;
    let used = count(&here, 7) * 100 / here.len().max(1);
    ensure((38..=42).contains(&used), || {
        format!("40 % of strict frames have {used} % of the line")
    })?;
    let rest = [0, 1, 2].map(|of| count(&here, of));
    let unit = rest.iter().sum::<usize>() / 6;
    let fair =
        (1..).zip(rest).all(|(weight, found)| found.abs_diff(weight * unit) * 10 <= weight * unit);
    ensure(fair, || format!("what is left goes {rest:?}, expected 1:2:3"))?;
    record.nothing_lost(&[])?;
    Ok(format!(
        "a strict backlog has {strict} ‰; with 40 % of the line strict, the rest goes {rest:?}"
    ))
}

/// Ways out and the classes that wait there; the idle one of each first. Source: the case.
const CLASSES: [(u8, u8, &[u8]); 4] =
    [(4, 1, &[0]), (5, 0, &[1, 2]), (6, 3, &[0, 1, 2]), (7, 5, &[0, 1, 2, 3, 4, 6, 7])];
const SHARED: [usize; 8] = [10, 20, 30, 40, 5, 15, 25, 35];

fn idle() -> Result<Record, Failure> {
    let link = format!("scheduling = {SHARED:?}");
    let stage = Stage::new(&star(7, "700 ms", &link, &roomy("")), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| (4..=7).for_each(|port| tester.pfc(port, 0xff, LONG)));
    script.at(COME, |tester| {
        for (to, _, classes) in CLASSES {
            classes.iter().for_each(|of| wait(tester, (1 + of % 3, to), *of, 150));
        }
    });
    // The ways in need 240 ms for all of it.
    script.at(ms(380), |tester| (4..=7).for_each(|port| tester.pfc(port, 0xff, 0)));
    stage.run(script)
}

/// QOS-05.
pub fn idle_share() -> Finding {
    let record = IDLE.get()?;
    let record = record.trusted()?;
    let mut told = Vec::new();
    for (port, idle, classes) in CLASSES {
        let order = order(record, port, SHUT);
        let both = &order[..until_one_has_gone(&order, classes)];
        let weights: usize = classes.iter().map(|of| SHARED[usize::from(*of)]).sum();
        for of in classes {
            let expected = both.len() * SHARED[usize::from(*of)] / weights;
            let found = count(both, *of);
            ensure(found.abs_diff(expected) * 10 <= expected + 10, || {
                format!(
                    "{} classes, {idle} idle: {found} of {} frames are of {of}, expected {expected}",
                    classes.len() + 1,
                    both.len()
                )
            })?;
        }
        let times: Vec<Instant> = record.packets(port).map(|seen| seen.at).collect();
        let took = times.last().map_or(Duration::ZERO, |last| last.since(times[0]));
        let line = (took.as_ps() / TIME.as_ps()) as usize + 1;
        ensure(times.len() * 100 >= line * 97, || format!("port {port} is idle in between"))?;
        told.push(format!("{} of {}", classes.len(), classes.len() + 1));
    }
    Ok(format!("{} classes wait: by weight within 10 %, the line never idle", told.join(", ")))
}
