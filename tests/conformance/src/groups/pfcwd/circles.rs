//! PFCWD-09 and PFCWD-10: a ring of switches whose routes close a circle of waits, before a run and in
//! one.

use crate::case::{Failure, Finding, ensure, same};
use launch;
use launch::experiment::{Conditions, Experiment};
use scenario::Scenario;
use std::fmt::Write;
use std::path::Path;

/// The outputs that wait for each other, each for the next.
pub const CIRCLE: [&str; 3] = ["s0:3", "s1:3", "s2:3"];

/// Three switches, two adapters each; what is for adapters elsewhere goes on by port 3, and both
/// adapters of a switch send to the one two switches on: two thirds of what each switch takes over from
/// the one before it has to go further.
fn ring(pause: &str, rest: &str) -> String {
    let run = "duration = \"4 ms\", backend = \"virtual\", sample = \"50 us\"";
    scenario(run, pause, &format!("headroom = \"20 KB\"\n{rest}"))
}

/// The same for live runs: little memory, so that the circle closes soon, and room for what comes while
/// a host stands still for 40 ms at 4000 times slowed.
pub fn live_ring(rest: &str) -> String {
    let run = "seed = 7, duration = \"1 ms\", backend = \"udp\", sample = \"20 us\"";
    let room = "headroom = \"120 KB\"\njitter = \"10 us\"\npool = { threshold = \"40 KB\" }\n";
    scenario(run, "pfc", &format!("{room}{rest}"))
}

fn scenario(run: &str, pause: &str, rest: &str) -> String {
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
         run = {{ {run} }}\n\
         [fabric]\ntechnology = \"ethernet\"\nmtu = \"1024 B\"\n\
         link = {{ rate = \"40 Gbps\", delay = \"100 ns\", pause = \"{pause}\" }}\n\
         nodes = [\n{nodes}]\nlinks = [\n{links}]\n{routes}\
         [fabric.switch]\nmemory = \"shared-pool\"\n{rest}\
         [scheme]\nkind = \"none\"\n{traffic}"
    )
}

fn read(text: &str) -> Result<Scenario, Failure> {
    Scenario::parse(text, &[]).map_err(|problems| Failure::Failed(problems.to_string()))
}

/// PFCWD-09.
pub fn found_before_start() -> Finding {
    let scenario = read(&ring("pfc", ""))?;
    let told: Vec<_> = scenario.warnings.iter().map(|warning| warning.message.as_str()).collect();
    let expected = format!("paused buffers can wait in a circle: {}", CIRCLE.join(" → "));
    ensure(told == [expected.as_str()], || format!("told are {told:?}, expected {expected:?}"))?;
    let all = "[[fabric.route]]\nat = \"s0\"\nto = [\"h2a\", \"h2b\"]\nport = 4\n\
               [[fabric.route]]\nat = \"s1\"\nto = [\"h0a\", \"h0b\"]\nport = 4\n\
               [[fabric.route]]\nat = \"s2\"\nto = [\"h1a\", \"h1b\"]\nport = 4\n";
    let shortest =
        read(&ring("pfc", "").replacen("[fabric.switch]", &format!("{all}[fabric.switch]"), 1))?;
    same("warnings where all go the short way", shortest.warnings.len(), 0)?;
    let lossy = read(&ring("none", ""))?;
    same("warnings where nobody pauses", lossy.warnings.len(), 0)?;
    Ok(format!("{expected}; nothing where all go the short way or nobody pauses"))
}

/// PFCWD-09, of a run with daemons: the file is looked at before any is started.
pub fn found_before_start_live() -> Finding {
    let scenario = read(&live_ring(""))?;
    let told: Vec<_> = scenario.warnings.iter().map(|warning| warning.message.as_str()).collect();
    let expected = format!("paused buffers can wait in a circle: {}", CIRCLE.join(" → "));
    ensure(told == [expected.as_str()], || format!("told are {told:?}, expected {expected:?}"))?;
    Ok(format!("{expected}; told before a daemon is started"))
}

/// PFCWD-10.
pub fn seen_at_run_time() -> Finding {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let stuck = run(&ring("pfc", ""), Some(folder.path()))?;
    let [found] = &stuck.result.deadlocks[..] else {
        return Err(format!("{} deadlocks were found", stuck.result.deadlocks.len()).into());
    };
    ensure(found.circle == CIRCLE && found.tc == 3 && found.over_ps.is_none(), || {
        format!("found is {found:?}")
    })?;
    let events = std::fs::read_to_string(folder.path().join("events.jsonl"));
    let events = events.map_err(|error| error.to_string())?;
    let lines: Vec<_> = events.lines().filter(|line| line.contains("\"deadlock\"")).collect();
    ensure(lines.len() == 1 && lines[0].contains("[\"s0:3\",\"s1:3\",\"s2:3\"]"), || {
        format!("events.jsonl tells of {lines:?}")
    })?;
    let last = found.at_ps;
    let lost = run(&ring("none", ""), None)?;
    same("deadlocks where nobody pauses", lost.result.deadlocks.len(), 0)?;
    let guard = "watchdog = { detection = \"500 us\", restoration = \"500 us\", poll = \"100 us\", \
                 action = \"drop\" }\n";
    let broken = run(&ring("pfc", guard), None)?;
    let over = broken.result.deadlocks.iter().filter(|found| found.over_ps.is_some()).count();
    ensure(over > 0 && over == broken.result.deadlocks.len(), || {
        format!("with a watchdog the deadlocks are {:?}", broken.result.deadlocks)
    })?;
    Ok(format!(
        "{} named {} us after the start, in the result and as an event; with a watchdog {over} found, each \
         over when it was broken; none where nobody pauses",
        CIRCLE.join(" → "),
        last / 1_000_000
    ))
}

fn run(text: &str, folder: Option<&Path>) -> Result<Experiment, Failure> {
    let scenario = read(text)?;
    let conditions = Conditions {
        substrate: launch::substrate(scenario.run.backend),
        dilation: 1,
        threads: 1,
        folder,
        command: String::new(),
        injections: Vec::new(),
    };
    Experiment::run(&scenario, conditions, &mut |_| {})
        .map_err(|error| Failure::Failed(error.to_string()))
}
