//! QOS-03 to QOS-05: who gets how much of a line for which several classes wait.

use super::{OUT, bench};
use crate::bench::Bench;
use crate::bench::devices::RATE;
use crate::bench::devices::ethernet::{FRAME_TIME, roomy, switch, with_pause};
use crate::bench::line::{OnLine, line, never_idle, packets};
use crate::bench::packets::ethernet::{frame, roce};
use crate::case::{Failure, Finding, ensure, same};
use proto::frame::Frame;
use proto::link::config::Selection;
use proto::units::{BitRate, Instant};
use std::num::NonZeroU8;
use switchd::switch::Switch;

/// What is asked of a class: a weight, or to go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Strict,
    Weight(u8),
}

/// Frames that wait for a line: of which priority, of how many octets of payload, how many.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    priority: u8,
    payload: usize,
    frames: u32,
}

/// A switch whose classes are those of the priorities, and which lets nothing out yet.
fn closed(classes: [Class; 8]) -> Result<Bench<Switch>, Failure> {
    let selection = classes.map(|class| match class {
        Class::Strict => Selection::Strict,
        Class::Weight(weight) => {
            Selection::Weighted(NonZeroU8::new(weight).unwrap_or(NonZeroU8::MIN))
        }
    });
    let config = with_pause(roomy(switch(OUT)), |pause| {
        pause.obeyed = 0xff;
        pause.scheduling.selection = selection;
    });
    let mut bench = bench(config)?;
    bench.pfc(OUT, 0xff, u16::MAX);
    Ok(bench)
}

fn of(priority: u8, payload: usize, psn: u32) -> Frame {
    frame(&roce(1 + u16::from(priority % 3), OUT.into(), priority, psn), payload)
}

/// All of it waits, come in by three ports.
fn fill(bench: &mut Bench<Switch>, backlogs: &[Backlog]) {
    for backlog in backlogs {
        let sent = of(backlog.priority, backlog.payload, 0);
        (0..backlog.frames).for_each(|_| bench.send(1 + backlog.priority % 3, sent.clone()));
    }
}

/// Opens the way out and lets all of it leave: priorities and octets of the frames, in order.
fn drained(bench: &mut Bench<Switch>, backlogs: &[Backlog]) -> Result<Vec<(u8, i64)>, Failure> {
    bench.pfc(OUT, 0xff, 0);
    let frames: u32 = backlogs.iter().map(|backlog| backlog.frames).sum();
    bench.run_for(FRAME_TIME * u64::from(frames));
    let sent = line(bench.line(OUT), RATE);
    never_idle(&sent)?;
    same("frames that leave", packets(&sent).count(), frames as usize)?;
    Ok(order(&sent))
}

fn order(sent: &[OnLine<'_>]) -> Vec<(u8, i64)> {
    let of = |sent: &OnLine<'_>| Some((sent.lane()?, sent.frame.line_size().get() as i64));
    packets(sent).filter_map(of).collect()
}

/// Octets by priority of what was sent.
fn totals(sent: &[(u8, i64)]) -> [i64; 8] {
    let mut totals = [0; 8];
    sent.iter().for_each(|(priority, octets)| totals[usize::from(*priority)] += octets);
    totals
}

/// Holds if after each frame there is a number of rounds of which every class has had its weight's
/// worth of octets, to within `slack`.
fn in_proportion(sent: &[(u8, i64)], weights: &[(u8, u8)], slack: i64) -> Result<(), Failure> {
    let mut totals = [0i64; 8];
    for (number, (priority, octets)) in sent.iter().enumerate() {
        totals[usize::from(*priority)] += octets;
        for (one, weight) in weights {
            for (other, other_weight) in weights {
                let ahead = (totals[usize::from(*one)] - slack) * i64::from(*other_weight);
                let behind = (totals[usize::from(*other)] + slack) * i64::from(*weight);
                ensure(ahead <= behind, || {
                    format!(
                        "after frame {number} classes have sent {totals:?} octets by weights \
                         {weights:?}: priority {one} is ahead of {other} by more than a frame each"
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// How many frames leave until one of the backlogs has gone.
fn until_one_has_gone(sent: &[(u8, i64)], backlogs: &[Backlog]) -> usize {
    let ends = |backlog: &Backlog| {
        let last = sent.iter().rposition(|(priority, _)| *priority == backlog.priority);
        last.map_or(sent.len(), |last| last + 1)
    };
    backlogs.iter().map(ends).min().unwrap_or(0)
}

fn longest(backlogs: &[Backlog]) -> i64 {
    let octets = |backlog: &Backlog| of(backlog.priority, backlog.payload, 0).line_size().get();
    backlogs.iter().map(octets).max().unwrap_or(0) as i64
}

fn weighted(weights: [u8; 8]) -> [Class; 8] {
    weights.map(Class::Weight)
}

/// QOS-03: a thousand frames by the source's weights; other weights, and frames of other sizes.
pub fn dwrr_shares() -> Finding {
    let frames_of = |priority| if priority == 3 || priority == 4 { 150 } else { 140 };
    let sonic = |priority: u8| Backlog { priority, payload: 256, frames: frames_of(priority) };
    let left = dwrr([14, 14, 14, 15, 15, 14, 14, 1], sonic)?;
    ensure(left < 80, || format!("{left} of 1000 frames are left when the first queue drains"))?;
    let equal = |priority: u8| Backlog { priority, payload: 256, frames: 140 };
    dwrr([1, 2, 4, 8, 16, 32, 64, 1], equal)?;
    let unlike =
        |priority: u8| Backlog { payload: 290 * usize::from(priority + 1), ..equal(priority) };
    dwrr([14, 14, 14, 15, 15, 14, 14, 1], unlike)?;
    dwrr([64, 32, 16, 8, 4, 2, 1, 1], unlike)?;
    Ok(format!(
        "7 queues of 140 or 150 frames by 14 or 15: {left} of 1000 are left when the first drains; also \
         by 1 to 64 and with sizes from 354 to 2094 octets each is within a frame of its share at \
         every moment"
    ))
}

/// Seven backlogs; how many frames are left when the first has gone.
fn dwrr(weights: [u8; 8], backlog: impl Fn(u8) -> Backlog) -> Result<usize, Failure> {
    let backlogs: Vec<_> = (0..7).map(backlog).collect();
    let mut bench = closed(weighted(weights))?;
    let before = bench.reading();
    fill(&mut bench, &backlogs);
    let sent = drained(&mut bench, &backlogs)?;
    let all = until_one_has_gone(&sent, &backlogs);
    let shares: Vec<_> = (0..7).zip(weights).collect();
    in_proportion(&sent[..all], &shares, longest(&backlogs))?;
    bench.nothing_lost(&before)?;
    Ok(sent.len() - all)
}

/// QOS-04: two strict classes among weighted ones, with a backlog and with less than the line.
pub fn strict_priority() -> Finding {
    let mut classes = weighted([1, 2, 3, 1, 1, 1, 1, 1]);
    (classes[5], classes[7]) = (Class::Strict, Class::Strict);
    let backlogs: Vec<_> =
        (0..8).map(|priority| Backlog { priority, payload: 1_000, frames: 100 }).collect();
    let mut bench = closed(classes)?;
    fill(&mut bench, &backlogs);
    let sent = drained(&mut bench, &backlogs)?;
    let firsts: Vec<u8> = sent[..200].iter().map(|(priority, _)| *priority).collect();
    let expected: Vec<u8> = [[7; 100], [5; 100]].concat();
    ensure(firsts == expected, || {
        "strict classes did not go first, the higher before the lower".to_owned()
    })?;
    let (used, longest_wait) = strict_below_its_rate(classes)?;
    Ok(format!(
        "a backlog of 7, then one of 5, alone on the line; with 7 at {used} % of the line the rest goes \
         1:2:3 to weighted classes, and a strict frame waits {longest_wait} ns at most"
    ))
}

/// Priority 7 comes at two fifths of the line, three weighted classes wait; the strict class's share of
/// the line in hundredths, and how long one of its frames waited at most, in ns.
fn strict_below_its_rate(classes: [Class; 8]) -> Result<(i64, u64), Failure> {
    const FRAMES: u32 = 200;
    let backlogs: Vec<_> =
        (0..3).map(|priority| Backlog { priority, payload: 1_000, frames: 300 }).collect();
    let mut bench = closed(classes)?;
    fill(&mut bench, &backlogs);
    bench.pfc(OUT, 0xff, 0);
    let rate = BitRate::new(RATE.get() * 2 / 5).unwrap_or(RATE);
    let frames = (0..FRAMES).map(|psn| of(7, 1_000, psn));
    let start = bench.now();
    let last = bench.stream(2, start, rate, frames);
    bench.run_until(last + FRAME_TIME);
    let sent = line(bench.line(OUT), RATE);
    never_idle(&sent)?;
    let own: Vec<_> = packets(&sent).filter(|sent| sent.lane() == Some(7)).collect();
    same("strict frames that leave", own.len(), FRAMES as usize)?;
    let each = own[0].frame.line_size();
    let waits = own.iter().zip(1u64..).map(|(sent, number)| {
        let came = start + each.time_at(rate) * number;
        sent.start.since(came)
    });
    let longest_wait = waits.max().unwrap_or_default();
    ensure(longest_wait <= each.time_at(RATE), || {
        format!("a strict frame waits {longest_wait}, more than a frame takes")
    })?;
    let until: Vec<_> = sent.into_iter().filter(|sent| sent.end <= last).collect();
    let (order, length) = (order(&until), last.since(Instant::ZERO).as_ps() / 1_000);
    let others: Vec<_> = order.iter().copied().filter(|(priority, _)| *priority < 3).collect();
    in_proportion(&others, &[(0, 1), (1, 2), (2, 3)], longest(&backlogs))?;
    let used = totals(&order)[7] * 100 / length as i64;
    ensure((39..=40).contains(&used), || format!("the strict class has {used} % of the line"))?;
    Ok((used, longest_wait.as_ps() / 1_000))
}

/// QOS-05: 2, 3, 4 and 8 classes of which all wait, or all but one; and one that ends on the way.
pub fn idle_share() -> Finding {
    const WEIGHTS: [u8; 8] = [10, 20, 30, 40, 5, 15, 25, 35];
    let mut runs = 0;
    for classes in [2, 3, 4, 8] {
        for idle in (0..classes).map(Some).chain([None]) {
            let waits = (0..classes).filter(|priority| Some(*priority) != idle);
            let backlogs: Vec<_> =
                waits.map(|priority| Backlog { priority, payload: 600, frames: 80 }).collect();
            let mut bench = closed(weighted(WEIGHTS))?;
            fill(&mut bench, &backlogs);
            let sent = drained(&mut bench, &backlogs)?;
            in_turn(&sent, backlogs, &WEIGHTS)?;
            runs += 1;
        }
    }
    Ok(format!(
        "{runs} runs of 2, 3, 4 and 8 classes with each of them idle in turn: the line is never idle, and \
         what a class leaves goes to the others by weight, to within a frame, from its last frame on"
    ))
}

/// While all of them wait the line is theirs by weight; then the first one ends, and it is the others'.
fn in_turn(
    mut sent: &[(u8, i64)],
    mut backlogs: Vec<Backlog>,
    weights: &[u8; 8],
) -> Result<(), Failure> {
    // Whoever was ahead when a class ended is so still.
    let slack = longest(&backlogs) + i64::from(*weights.iter().max().unwrap_or(&0));
    while !backlogs.is_empty() {
        let all = until_one_has_gone(sent, &backlogs);
        let shares: Vec<_> = backlogs
            .iter()
            .map(|backlog| (backlog.priority, weights[usize::from(backlog.priority)]))
            .collect();
        in_proportion(&sent[..all], &shares, slack)?;
        sent = &sent[all..];
        backlogs.retain(|backlog| sent.iter().any(|(priority, _)| *priority == backlog.priority));
    }
    same("frames left", sent.len(), 0)
}
