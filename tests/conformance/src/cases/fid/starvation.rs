//! FID-08 live: a daemon that gets a tenth of a core says so.

use crate::prelude::*;
use crate::stage;
use crate::star::star;
use emulation::driver::evidence;
use emulation::fidelity::{Fidelity, judge};
use emulation::wiring::NodeKind;
use launch::Job;
use launch::daemons::Cabling;
use launch::daemons::tester::{self, RunStart, TesterSetup};
use launch::placement::Hosting;
use scenario::Scenario;
use scenario::render::render;
use scenario::run::Placement;
use std::num::NonZeroU64;

/// FID-08.
pub fn starvation(_: Level) -> Finding {
    let rest = "[[traffic]]\nname = \"incast\"\nfrom = \"h[1-3]\"\nto = \"h4\"\n\
                arrivals = \"backlog\"\nsize = \"2048 B\"\ntransport = \"rc\"\n";
    let text = star(4, "10 s", "", rest);
    let (fidelity, departures) = starved(&text)?;
    ensure(!fidelity.ok, || {
        let p99 = fidelity.lateness_p99_frames;
        format!("a tenth of a core, lateness p99 {p99} frames, and the run passes for faithful")
    })?;
    Ok(format!(
        "{departures} departures, p99 {:.2} frames late, inconclusive",
        fidelity.lateness_p99_frames
    ))
}

/// A run whose switches stand still for nine tenths of the time; the verdict, and frame-hops.
fn starved(text: &str) -> Result<(Fidelity, u64), Failure> {
    let scenario = Scenario::parse(text, &[]);
    let scenario = scenario.map_err(|faults| faults.in_file("a live case"))?;
    let lab = render(&scenario);
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|error| Failure::Inconclusive(error.to_string()))?;
    let run = &scenario.run;
    let job = Job {
        lab: &lab,
        name: &scenario.name,
        seed: run.seed,
        dilation: dilation(1),
        threads: 1,
        placement: run.placement,
        cables: run.cables,
        carrier: run.carrier,
        realtime: run.realtime,
        awake: run.awake,
        capture: None,
        injections: Vec::new(),
        scratch: scratch.path(),
    };
    let hosting = Hosting::new(&lab.fabric.wiring, Placement::Worker, 2);
    let switches = hosting.kinds.iter().position(|kind| *kind == NodeKind::Switch);
    let switches = switches.ok_or_else(|| "no process hosts switches".to_owned())?;
    let cabling = Cabling::on_loopback(&job);
    let environment = Vec::new();
    let setting =
        TesterSetup { hosting, cabling, address: None, receive_buffer: None, environment };
    let player = move |opening: &RunStart| {
        while !opening.is_over() {
            let held = opening.suspend(switches);
            opening.wait_until(opening.clock.now() + opening.clock.fabric(90_000_000));
            drop(held);
            opening.wait_until(opening.clock.now() + opening.clock.fabric(10_000_000));
        }
    };
    let played = tester::run(&job, setting, player).map_err(stage::died)?;
    let evidence = evidence(&played.reports, played.missed);
    let departures = played.reports.iter().map(|report| report.departures).sum();
    Ok((judge(&evidence, NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN)), departures))
}
