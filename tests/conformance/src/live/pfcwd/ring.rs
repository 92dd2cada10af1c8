//! PFCWD-09 and PFCWD-10 live: a ring of three switches whose routes close a circle of waits.

use crate::case::{Failure, Finding, ensure, same};
use crate::groups::pfcwd::circles::{CIRCLE, live_ring};
use crate::live::cached::Cached;
use crate::live::fabrics::Fabric;

/// A frame of 1 KiB at 40 Gb/s is 0.22 µs; so much slowed down, 0.87 ms.
const SLOWED: u64 = 4_000;
/// An output takes part that has been held for so many bins; a circle shall be told of a bin after.
const BINS: u64 = 4;

static STUCK: Cached<Fabric> = Cached::new(|| run(""), Fabric::holds);
static BROKEN: Cached<Fabric> = Cached::new(
    || {
        run("watchdog = { detection = \"200 us\", restoration = \"200 us\", poll = \"50 us\", \
             action = \"drop\" }\n")
    },
    Fabric::holds,
);

fn run(guard: &str) -> Result<Fabric, Failure> {
    Fabric::run(&live_ring(guard), SLOWED)
}

/// PFCWD-10.
pub fn seen_at_run_time() -> Finding {
    let stuck = STUCK.get()?;
    let experiment = stuck.trusted()?;
    let [found] = &experiment.result.deadlocks[..] else {
        return Err(format!("{} deadlocks were found", experiment.result.deadlocks.len()).into());
    };
    ensure(found.circle == CIRCLE && found.tc == 3 && found.over_ps.is_none(), || {
        format!("found is {found:?}")
    })?;
    // Zero progress: each output of the circle has been held since before it was found.
    let bin = experiment.lab.plan.bin;
    let recordings = experiment.outcome.recordings.iter();
    let holds: Vec<_> = recordings.flat_map(|recording| &recording.holds.long).collect();
    let ends = CIRCLE.map(|name| {
        let wiring = &experiment.lab.fabric.wiring;
        let hold = holds
            .iter()
            .find(|hold| wiring.end_name(hold.at) == name && hold.tc == 3 && hold.to.is_none());
        hold.map(|hold| hold.from.as_ps())
    });
    let last = ends.iter().copied().max().flatten();
    let last = last.ok_or_else(|| "an output of the circle was not held".to_owned())?;
    let within = (bin * (BINS + 1)).as_ps();
    ensure(ends.iter().all(Option::is_some) && found.at_ps.saturating_sub(last) <= within, || {
        format!("closed at {last} ps, found at {} ps, within {within} is due", found.at_ps)
    })?;
    let broken = BROKEN.get()?;
    let deadlocks = &broken.trusted()?.result.deadlocks;
    let over = deadlocks.iter().filter(|found| found.over_ps.is_some()).count();
    ensure(over > 0, || format!("with a watchdog the deadlocks are {deadlocks:?}"))?;
    // One may stand when the run ends.
    ensure(over + 1 >= deadlocks.len(), || format!("with a watchdog: {deadlocks:?}"))?;
    same("circles of other outputs", deadlocks.iter().any(|found| found.circle != CIRCLE), false)?;
    Ok(format!(
        "{} named {} us after the last of it stood still, {} bins; with a watchdog {over} found and over \
         when it was broken",
        CIRCLE.join(" → "),
        (found.at_ps - last) / 1_000_000,
        (found.at_ps - last).div_ceil(bin.as_ps())
    ))
}
