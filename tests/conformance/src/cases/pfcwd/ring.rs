//! PFCWD-09 and PFCWD-10: a ring of switches whose routes close a circle of waits, before a run and in one.

use crate::prelude::*;
use scenario::Scenario;
use std::fmt::Write;

/// The outputs that wait for each other, each for the next.
pub const CIRCLE: [&str; 3] = ["s0:3", "s1:3", "s2:3"];

/// Three switches, two adapters each; what is for adapters elsewhere goes on by port 3, and both
/// adapters of a switch send to the one two switches on: two thirds of what each switch takes over from
/// the one before it has to go further. There is little memory, so that the circle closes soon, and room
/// for what comes while a host stands still for 40 ms at 4000 times slowed.
pub fn ring(pause: &str, rest: &str) -> String {
    let (mut nodes, mut links, mut routes, mut traffic) = Default::default();
    let parts: [&mut String; 4] = [&mut nodes, &mut links, &mut routes, &mut traffic];
    let [nodes, links, routes, traffic] = parts;
    for s in 0..3 {
        let host = |index: usize| format!("h{}{}", index % 3, (b'a' + (index / 3) as u8) as char);
        let (one, two) = (host(s), host(s + 3));
        let (next, after) = ((s + 1) % 3, (s + 2) % 3);
        // Writing to a String cannot fail.
        let _ = writeln!(
            nodes,
            "{{ name = \"{one}\", kind = \"nic\" }}, {{ name = \"{two}\", kind = \"nic\" }}, \
             {{ name = \"s{s}\", kind = \"switch\" }},"
        );
        let _ = writeln!(
            links,
            "{{ a = \"{one}:1\", b = \"s{s}:1\" }}, {{ a = \"{two}:1\", b = \"s{s}:2\" }}, \
             {{ a = \"s{s}:3\", b = \"s{next}:4\" }},"
        );
        let far = [host(next), host(next + 3), host(after), host(after + 3)];
        let far = far.map(|name| format!("\"{name}\"")).join(", ");
        let _ = writeln!(routes, "[[fabric.route]]\nat = \"s{s}\"\nto = [{far}]\nport = 3");
        let _ = write!(
            traffic,
            "[[traffic]]\nname = \"from-{s}\"\nfrom = [\"{one}\", \"{two}\"]\nto = \"{}\"\n\
             arrivals = \"backlog\"\nsize = \"1 MB\"\n",
            host(after)
        );
    }
    format!(
        "schema = 1\nname = \"ring\"\nsource = \"conformance\"\n\
         run = {{ seed = 7, duration = \"1 ms\", backend = \"udp\", sample = \"20 us\" }}\n\
         [fabric]\ntechnology = \"ethernet\"\nmtu = \"1024 B\"\n\
         link = {{ rate = \"40 Gbps\", delay = \"100 ns\", pause = \"{pause}\" }}\n\
         nodes = [\n{nodes}]\nlinks = [\n{links}]\n{routes}\
         [fabric.switch]\nmemory = \"shared-pool\"\nheadroom = \"120 KB\"\njitter = \"10 us\"\n\
         pool = {{ threshold = \"40 KB\" }}\n{rest}\
         [scheme]\nkind = \"none\"\n{traffic}"
    )
}

fn read(text: &str) -> Result<Vec<String>> {
    let scenario = Scenario::parse(text, &[]).map_err(|problems| problems.to_string())?;
    Ok(scenario.warnings.into_iter().map(|warning| warning.message).collect())
}

/// PFCWD-09: the file is looked at before anything runs.
pub fn found_before_start(_: Level) -> Finding {
    let told = read(&ring("pfc", ""))?;
    let expected = format!("paused buffers can wait in a circle: {}", CIRCLE.join(" → "));
    ensure!(told == [expected.as_str()], "told are {told:?}, expected {expected:?}");
    let all = "[[fabric.route]]\nat = \"s0\"\nto = [\"h2a\", \"h2b\"]\nport = 4\n\
               [[fabric.route]]\nat = \"s1\"\nto = [\"h0a\", \"h0b\"]\nport = 4\n\
               [[fabric.route]]\nat = \"s2\"\nto = [\"h1a\", \"h1b\"]\nport = 4\n";
    let shortest = ring("pfc", "").replacen("[fabric.switch]", &format!("{all}[fabric.switch]"), 1);
    same("warnings where all go the short way", read(&shortest)?.len(), 0)?;
    // There `headroom` and `jitter` have no effect, and a warning of each says so.
    let mut unpaused = read(&ring("none", ""))?;
    unpaused.retain(|warning| warning.contains("in a circle"));
    same("circles where nothing pauses", unpaused.len(), 0)?;
    Ok(format!("{expected}; nothing where all go the short way or nothing pauses"))
}

/// A frame of 1 KiB at 40 Gb/s is 0.22 µs; so much slowed down, 0.87 ms.
const SLOWED: u64 = 4_000;
/// An output takes part that has been held for so many bins; a circle shall be told of a bin after.
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
    same(
        "the circle",
        (&found.circle[..], found.tc, found.over_ps),
        (&CIRCLE.map(str::to_owned)[..], 3, None),
    )?;
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
    let events = stuck.events.lines().filter(|line| line.contains("\"deadlock\""));
    let events: Vec<_> = events.collect();
    same("deadlocks in events.jsonl", events.len(), 1)?;
    ensure!(events[0].contains("[\"s0:3\",\"s1:3\",\"s2:3\"]"), "told is {events:?}");
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
