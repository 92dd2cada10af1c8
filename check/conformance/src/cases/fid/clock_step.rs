//! FID-09 live: the calendar clock of a daemon jumps by hours, and no protocol timer notices.
//!
//! Every reading of the calendar clock is off by an hour, now forwards and now back, and each reading is counted.

use crate::prelude::*;
use crate::star::star;
use crate::stepped_clock::SteppedClock;
use std::path::Path;
use testbed::frames::infiniband::Packet;

/// CCTI_Timer, in units of 1.024 µs: 30 ms.
const TIMER: u64 = 29_297;
/// Steps of the index.
const STEPS: u64 = 10;
/// The clock is off by this, forwards and back, for a tenth of a second each.
const HOUR_NS: i64 = 3_600_000_000_000;
const PERIOD: std::time::Duration = std::time::Duration::from_millis(100);
/// When the notifications come, and between when there is no credit.
const NOTIFIED: Instant = ms(200);
const SHUT: (Instant, Instant) = (ms(650), ms(850));

fn run(on: Level, folder: &Path) -> Result<(Record, (usize, usize))> {
    let clock = SteppedClock::compile(folder)?;
    let scheme = format!(
        "[scheme]\nkind = \"ib-cca\"\nccti_increase = 5\nccti_limit = {STEPS}\nccti_timer = {TIMER}\n"
    );
    let rest = scheme + &backlog("steady", "h1", "h2", "");
    let mut stage = Stage::new(on, &star(2, "1 s", "", &rest), "h1")?;
    stage.environment = clock.environment(PERIOD, &[HOUR_NS, -HOUR_NS], None);
    let record = stage.play(|script| {
        script.every(NOTIFIED, us(1_000), 2, |bed, _| bed.send(1, &Packet::cnp(2, 1).octets()));
        script.at(SHUT.0, |bed| bed.offer(1, 0, 0));
        script.at(SHUT.1, |bed| bed.offer(1, 0, OFFER_MAX));
    })?;
    Ok((record, clock.readings()))
}

/// FID-09.
pub fn clock_step(on: Level) -> Finding {
    let folder = tempfile::tempdir().map_err(Failure::of_host)?;
    let (record, (loaded, readings)) = run(on, folder.path())?;
    record.kept_up()?;
    if loaded == 0 {
        let reason = "the daemon does not load libraries: its clock cannot be stepped";
        return Err(Failure::Inconclusive(reason.to_owned()));
    }
    let reacts: Vec<(Instant, u64)> = record
        .events(1, ALWAYS)
        .filter_map(|event| match event.kind {
            EventKind::React { scalar, .. } => Some((event.at, scalar)),
            _ => None,
        })
        .collect();
    let begin = reacts.first().map_or(Instant::ZERO, |(at, _)| *at);
    ensure!(begin >= NOTIFIED && begin < NOTIFIED + us(1_000), "first reaction at {begin}");
    let falls: Vec<Instant> =
        reacts.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[1].0).collect();
    let period = Duration::from_ns(1_024) * TIMER;
    let due: Vec<Instant> = (1..=STEPS).map(|step| begin + period * step).collect();
    ensure!(falls == due, "the index fell at {falls:?}, expected {due:?}");
    let held = record.on_lane(1, 0, (SHUT.0 + us(4_000), SHUT.1));
    same("packets while there is no credit", held, 0)?;
    let after = record.packets(1).map(|seen| seen.at).find(|at| *at >= SHUT.1);
    let soon = after.is_some_and(|at| at < SHUT.1 + us(4_000));
    ensure!(soon, "after the pause the first packet leaves at {after:?}");
    same("watchdogs", record.port(1).watchdogs, 0)?;
    Ok(format!("{STEPS} steps of CCTI, none moved by {readings} readings of a stepped clock"))
}
