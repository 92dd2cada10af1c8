//! PFCWD-09 and PFCWD-10: a ring of switches whose routes close a circle of waits, before a run and in one.

use crate::prelude::*;
use scenario::Scenario;

/// The outputs that wait for each other, each for the next.
pub const CIRCLE: [&str; 3] = ["s0:3", "s1:3", "s2:3"];

/// Three switches, two adapters each; what is for adapters elsewhere goes on by port 3, and both
/// adapters of a switch send to the one two switches on: two thirds of what each switch takes over from
/// the one before it has to go further. There is little memory, so that the circle closes soon, and room
/// for frames that arrive while a host stops for 40 ms at 4000 times slowed.
pub fn ring(pause: &str, rest: &str) -> String {
    let text =
        include_str!("ring.toml").replace("pause = \"pfc\"", &format!("pause = \"{pause}\""));
    text.replace("# Further keys of the switches.\n", rest)
}

fn read(text: &str) -> Result<Vec<String>> {
    let scenario = Scenario::parse(text, &[]).map_err(|problems| problems.to_string())?;
    Ok(scenario.warnings.into_iter().map(|warning| warning.message).collect())
}

/// PFCWD-09: the file is looked at before anything runs.
pub fn found_before_start(_: Level) -> Finding {
    let seen = read(&ring("pfc", ""))?;
    let expected = format!("paused buffers can wait in a circle: {}", CIRCLE.join(" → "));
    ensure!(seen == [expected.as_str()], "the warnings are {seen:?}, expected {expected:?}");
    let all = "[[fabric.route]]\nat = \"s0\"\nto = [\"h2a\", \"h2b\"]\nport = 4\n\
               [[fabric.route]]\nat = \"s1\"\nto = [\"h0a\", \"h0b\"]\nport = 4\n\
               [[fabric.route]]\nat = \"s2\"\nto = [\"h1a\", \"h1b\"]\nport = 4\n";
    let shortest = ring("pfc", "").replacen("[fabric.switch]", &format!("{all}[fabric.switch]"), 1);
    same("warnings where all go the short way", read(&shortest)?.len(), 0)?;
    // There `headroom` and `jitter` have no effect, and there is a warning of each.
    let mut unpaused = read(&ring("none", ""))?;
    unpaused.retain(|warning| warning.contains("in a circle"));
    same("circles where nothing pauses", unpaused.len(), 0)?;
    Ok(format!("{expected}; nothing where all go the short way or nothing pauses"))
}

/// A frame of 1 KiB at 40 Gb/s is 0.22 µs; so much slowed down, 0.87 ms.
const SLOWED: u64 = 4_000;
/// An output takes part that has been held for so many bins; a circle shall be reported a bin later.
const BINS: u64 = 4;

static STUCK: Shared<Fabric> = Shared::new(|on| Fabric::run(on, &ring("pfc", ""), SLOWED));
static BROKEN: Shared<Fabric> = Shared::new(|on| Fabric::run(on, &ring("pfc", GUARD), SLOWED));
const GUARD: &str = "watchdog = { detection = \"200 us\", restoration = \"200 us\", poll = \"50 us\", \
                     action = \"drop\" }\n";

/// PFCWD-10.
pub fn seen_at_run_time(on: Level) -> Finding {
    let stuck = STUCK.on(on)?;
    let experiment = &stuck.experiment;
    let [found] = &experiment.result.deadlocks[..] else {
        bail!("{} deadlocks were found", experiment.result.deadlocks.len());
    };
    same("the circle", &found.circle[..], CIRCLE)?;
    same("its priority and its end", (found.tc, found.over_ps), (3, None))?;
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
    let last =
        ends.iter().copied().max().flatten().ok_or("an output of the circle was not held")?;
    let within = (bin * (BINS + 1)).as_ps();
    lies("ps from the last hold", found.at_ps.saturating_sub(last), ..=within)?;
    let events: Vec<_> =
        stuck.events.lines().filter(|line| line.contains("\"deadlock\"")).collect();
    same("deadlocks in events.jsonl", events.len(), 1)?;
    ensure!(events[0].contains("[\"s0:3\",\"s1:3\",\"s2:3\"]"), "the event is {events:?}");
    if on == Level::Engine {
        let lossy = Fabric::run(on, &ring("none", ""), SLOWED)?;
        same("deadlocks where nothing pauses", lossy.experiment.result.deadlocks.len(), 0)?;
    }
    let broken = BROKEN.on(on)?;
    let deadlocks = &broken.experiment.result.deadlocks;
    let over = deadlocks.iter().filter(|found| found.over_ps.is_some()).count();
    ensure!(over > 0, "with a watchdog the deadlocks are {deadlocks:?}");
    // One may stand when the run ends.
    ensure!(over + 1 >= deadlocks.len(), "with a watchdog: {deadlocks:?}");
    same("circles of other outputs", deadlocks.iter().any(|found| found.circle != CIRCLE), false)?;
    Ok(format!(
        "{} named after {} ps; with a watchdog {over} over",
        CIRCLE.join(" → "),
        found.at_ps - last
    ))
}
