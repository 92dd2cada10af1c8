//! QOS-03 to QOS-05: the shares of a line for which several classes wait.

use crate::ethernet::*;
use crate::prelude::*;
use testbed::frames::ethernet::{frame, priority, roce};

/// Octets of payload; such a frame has 318 octets, DA to FCS.
const PAYLOAD: usize = 256;
const TIME: Duration = Duration::from_ps(OCTET.as_ps() * 318);
/// When ways out are shut, when frames come, and when they may go.
const SHUT: Instant = ms(100);
const COME: Instant = ms(110);
const OPEN: Instant = ms(330);

/// A backlog: priority, octets of payload, frames.
type Backlog = (u8, usize, u32);

static WEIGHTED: Shared<Record> = Shared::new(|on| weighted(on, SONIC, sonic, OPEN));
static IDLE: Shared<Record> = Shared::new(|on| idle(on, &CLASSES));

/// Frames of a backlog wait at the neighbour of `from` for its line to adapter `to`.
fn wait(bed: &mut dyn Bed, (from, to): (u8, u8), (of, payload, count): Backlog) {
    for psn in 0..count {
        bed.enqueue(from, frame(&roce(from.into(), to.into(), of, psn), payload).octets);
    }
}

/// Priorities and octets of frames, in order.
fn order<'a>(sent: impl Iterator<Item = &'a Seen>) -> Vec<(u8, i64)> {
    let of = |seen: &Seen| Some((priority(&seen.frame)?, seen.frame.line_size().get() as i64));
    sent.filter_map(of).collect()
}

fn count(order: &[(u8, i64)], of: u8) -> usize {
    order.iter().filter(|(priority, _)| *priority == of).count()
}

/// How many frames leave until one of the priorities has gone.
fn until_one_has_gone(order: &[(u8, i64)], priorities: &[u8]) -> usize {
    let last = |of: &u8| order.iter().rposition(|(priority, _)| priority == of);
    priorities.iter().map(|of| last(of).map_or(0, |at| at + 1)).min().unwrap_or(0)
}

/// Holds if after each frame there is a number of rounds of which every class has had its weight's
/// worth of octets, to within `slack`.
fn in_proportion(sent: &[(u8, i64)], weights: &[(u8, i64)], slack: i64) -> Result<()> {
    let mut totals = [0i64; 8];
    for (number, (priority, octets)) in sent.iter().enumerate() {
        totals[usize::from(*priority)] += octets;
        for (one, weight) in weights {
            for (other, other_weight) in weights {
                let ahead = (totals[usize::from(*one)] - slack) * other_weight;
                let behind = (totals[usize::from(*other)] + slack) * weight;
                ensure!(ahead <= behind, "frame {number}: {totals:?}, {one} is ahead of {other}");
            }
        }
    }
    Ok(())
}

fn longest(sent: &[(u8, i64)]) -> i64 {
    sent.iter().map(|(_, octets)| *octets).max().unwrap_or(0)
}

/// Source: qos_params.td3.yaml, wrr.
const SONIC: [i64; 8] = [14, 14, 14, 15, 15, 14, 14, 1];

fn sonic(of: u8) -> Backlog {
    (of, PAYLOAD, SONIC[usize::from(of)] as u32 * 10)
}

/// The same number of frames of unlike sizes.
fn unlike(of: u8) -> Backlog {
    (of, 290 * usize::from(of + 1), 140)
}

/// Seven backlogs come in by three ports and leave by the fourth.
fn weighted(
    on: Level,
    weights: [i64; 8],
    backlog: fn(u8) -> Backlog,
    open: Instant,
) -> Result<Record> {
    let link = format!("scheduling = {weights:?}");
    let duration = if open > OPEN { "3 s" } else { "700 ms" };
    play(on, &star(4, duration, &link, &roomy("")), "s0", |script| {
        script.pause((SHUT, open), &[4], 0xff);
        script.at(COME, move |bed| (0..7).for_each(|of| wait(bed, (1 + of % 3, 4), backlog(of))));
    })
}

/// Each class has its share while all wait; how many frames are left when the first has gone.
fn in_shares(record: &Record, weights: [i64; 8], backlog: fn(u8) -> Backlog) -> Result<usize> {
    let order = order(record.packets(4));
    same("frames that leave", order.len() as u32, (0..7).map(|of| backlog(of).2).sum::<u32>())?;
    let all = &order[..until_one_has_gone(&order, &[0, 1, 2, 3, 4, 5, 6])];
    let shares: Vec<_> = (0..7).zip(weights).collect();
    if record.live.is_none() {
        in_proportion(all, &shares, longest(&order))?;
        OnLine::never_idle(&OnLine::all(record.packets(4), RATE))?;
    }
    record.nothing_lost(&[])?;
    Ok(order.len() - all.len())
}

/// QOS-03: a thousand frames by the source's weights; on the virtual clock other weights and sizes too.
pub fn dwrr_shares(on: Level) -> Finding {
    let record = WEIGHTED.on(on)?;
    let left = in_shares(&record, SONIC, sonic)?;
    ensure!(left < 80, "{left} of 1000 frames are left when a queue drains");
    // Every hundred frames show the weights.
    let order = order(record.packets(4));
    for (from, stretch) in order[..order.len() - left].chunks_exact(100).enumerate() {
        for (of, weight) in (0u8..7).zip(SONIC) {
            let (found, weight) = (count(stretch, of), weight as usize);
            near(format!("priority {of} from {from}00 on"), found, weight, weight * 15 / 100 + 1)?;
        }
    }
    type Row = ([i64; 8], fn(u8) -> Backlog);
    let others: [Row; 3] = [
        ([1, 2, 4, 8, 16, 32, 64, 1], |of| (of, PAYLOAD, 140)),
        (SONIC, unlike),
        ([64, 32, 16, 8, 4, 2, 1, 1], unlike),
    ];
    for (weights, backlog) in on.swept(&others) {
        let record = weighted(on, *weights, *backlog, ms(1_200))?;
        in_shares(&record, *weights, *backlog)?;
    }
    Ok(format!("7 queues by 14 or 15: {left} of 1000 left when the first drains"))
}

/// Strict frames beside a backlog: so many of either class at once, then two in five.
const STRICT_COUNT: u32 = 200;
const STRICT_EVERY: Duration = Duration::from_ps(TIME.as_ps() * 5 / 2);
const LATER: Instant = ms(430);

static STRICT: Shared<Record> = Shared::new(|on| {
    let link = "scheduling = [1, 2, 3, 1, 1, \"strict\", 1, \"strict\"]";
    play(on, &star(5, "900 ms", link, &roomy("")), "s0", |script| {
        script.pause((SHUT, OPEN), &[4], 0xff);
        script.at(COME, |bed| {
            (0..3).for_each(|of| wait(bed, (1 + of, 4), (of, PAYLOAD, 600)));
            [5, 7].into_iter().for_each(|of| wait(bed, (5, 4), (of, PAYLOAD, STRICT_COUNT / 2)));
        });
        script.every(LATER, STRICT_EVERY, u64::from(STRICT_COUNT), |bed, _| {
            bed.send_frame(5, &frame(&roce(5, 4, 7, 0), PAYLOAD))
        });
    })
});

/// QOS-04: two strict classes among weighted ones, with a backlog and with less than the line.
pub fn strict_priority(on: Level) -> Finding {
    let record = STRICT.on(on)?;
    let all = order(record.packets(4));
    let first = &all[..all.len().min(STRICT_COUNT as usize)];
    let strict = (count(first, 7) + count(first, 5)) * 1_000 / first.len().max(1);
    let least = if on == Level::Live { 950 } else { 999 };
    ensure!(strict > least, "strict backlogs have {strict} ‰ of the line");
    let higher = count(&first[..first.len() / 2], 7) * 1_000 / (first.len() / 2).max(1);
    ensure!(higher > least, "of the first half {higher} ‰ are of the higher class");
    let (from, to) = (LATER + us(10_000), LATER + STRICT_EVERY * u64::from(STRICT_COUNT));
    let here = order(record.packets(4).within((from, to)));
    let line = (to.since(from).as_ps() / TIME.as_ps()) as usize;
    ensure!(here.len() * 100 >= line * 97, "{} frames of {line}: idle", here.len());
    let used = count(&here, 7) * 100 / here.len().max(1);
    ensure!((38..=42).contains(&used), "40 % of strict frames have {used} %");
    let rest = [0, 1, 2].map(|of| count(&here, of));
    let unit = rest.iter().sum::<usize>() / 6;
    let fair =
        (1..).zip(rest).all(|(weight, found)| found.abs_diff(weight * unit) * 10 <= weight * unit);
    ensure!(fair, "what is left goes {rest:?}, expected 1:2:3");
    if on == Level::Engine {
        let others: Vec<_> = here.iter().copied().filter(|(of, _)| *of < 3).collect();
        in_proportion(&others, &[(0, 1), (1, 2), (2, 3)], 2 * longest(&here))?;
        let sent: Vec<_> = record.packets(4).within((OPEN, to)).collect();
        OnLine::never_idle(&OnLine::all(sent.into_iter(), RATE))?;
    }
    let strict_frames = record.data(4, 7).skip(STRICT_COUNT as usize / 2);
    for (number, seen) in (0..).zip(strict_frames) {
        let came = LATER + STRICT_EVERY * number + TIME + DELAY;
        let most = TIME * 2 + record.within(us(100));
        lies(format!("wait of strict frame {number}"), seen.at.since(came), ..=most)?;
    }
    record.nothing_lost(&[])?;
    Ok(format!("strict backlogs have {strict} ‰; beside 40 % strict the rest goes {rest:?}"))
}

/// Ways out and the classes that wait there; the idle one of each first. Source: the case.
const CLASSES: [(u8, &[u8]); 4] =
    [(4, &[0]), (5, &[1, 2]), (6, &[0, 1, 2]), (7, &[0, 1, 2, 3, 4, 6, 7])];
const SHARES: [i64; 8] = [10, 20, 30, 40, 5, 15, 25, 35];

fn idle(on: Level, classes: &[(u8, &[u8])]) -> Result<Record> {
    let link = format!("scheduling = {SHARES:?}");
    play(on, &star(7, "1 s", &link, &roomy("")), "s0", |script| {
        // The ways in need 240 ms for all of it.
        script.pause((SHUT, ms(380)), &[4, 5, 6, 7], 0xff);
        for (to, classes) in classes {
            let (to, classes) = (*to, classes.to_vec());
            script.at(COME, move |bed| {
                classes.iter().for_each(|of| wait(bed, (1 + of % 3, to), (*of, PAYLOAD, 150)));
            });
        }
    })
}

/// What waits at `port` goes by weight until one class has gone, and the line is never idle.
fn by_weight(record: &Record, port: u8, classes: &[u8]) -> Result<()> {
    let order = order(record.packets(port));
    let both = &order[..until_one_has_gone(&order, classes)];
    let weights: i64 = classes.iter().map(|of| SHARES[usize::from(*of)]).sum();
    for of in classes {
        let expected = both.len() * SHARES[usize::from(*of)] as usize / weights as usize;
        let found = count(both, *of);
        near(format!("{of} of {classes:?}"), found, expected, expected / 10 + 1)?;
    }
    let sent = OnLine::all(record.packets(port), RATE);
    let took = sent.last().map_or(Duration::ZERO, |last| last.end.since(sent[0].start));
    let line = (took.as_ps() / TIME.as_ps()) as usize;
    ensure!(sent.len() * 100 >= line * 97, "port {port} is idle in between");
    if record.live.is_none() {
        OnLine::never_idle(&sent)?;
        in_turn(&order, classes.to_vec())?;
    }
    Ok(())
}

/// While all of them wait the line is theirs by weight; then the first one ends, and it is the others'.
fn in_turn(mut sent: &[(u8, i64)], mut classes: Vec<u8>) -> Result<()> {
    // A class that was ahead when another ended is so still.
    let slack = longest(sent) + 40;
    while !classes.is_empty() {
        let all = until_one_has_gone(sent, &classes);
        let shares: Vec<_> = classes.iter().map(|of| (*of, SHARES[usize::from(*of)])).collect();
        in_proportion(&sent[..all], &shares, slack)?;
        sent = &sent[all..];
        classes.retain(|of| count(sent, *of) > 0);
    }
    same("frames left", sent.len(), 0)
}

/// QOS-05: 2, 3, 4 and 8 classes with one of them idle; on the virtual clock with each in turn, and none.
pub fn idle_share(on: Level) -> Finding {
    let record = IDLE.on(on)?;
    let mut counts = Vec::new();
    for (port, classes) in CLASSES {
        by_weight(&record, port, classes)?;
        counts.push(format!("{} of {}", classes.len(), classes.len() + 1));
    }
    for classes in on.swept(&[2, 3, 4, 8]) {
        for idle in 0..=*classes {
            let waits: Vec<u8> = (0..*classes).filter(|of| *of != idle).collect();
            by_weight(&self::idle(on, &[(4, &waits)])?, 4, &waits)?;
        }
    }
    Ok(format!("{} classes wait: by weight within 10 %, the line never idle", counts.join(", ")))
}
