//! FID-08 live: a daemon that gets a tenth of a core reports its lateness.

use crate::prelude::*;
use crate::stage;
use crate::star::star;
use emulation::driver::evidence;
use emulation::fidelity::{Fidelity, judge};
use emulation::wiring::NodeKind;
use launch::Job;
use launch::daemons::tester::{self, RunStart};
use launch::daemons::{Cabling, Setup};
use launch::placement::Hosting;
use scenario::render::render;
use scenario::run::Placement;
use std::num::NonZeroU64;

/// FID-08.
pub fn starvation(_: Level) -> Finding {
    let text = star(4, "10 s", "", &traffic("incast", "h[1-3]", "h4", super::incast::INCAST_KEYS));
    let (fidelity, departures) = starved(&text)?;
    let p99 = fidelity.lateness_p99_frames.ok_or("no lateness")?;
    ensure!(!fidelity.ok, "a tenth of a core, lateness p99 {p99} frames, and the run passes");
    Ok(format!("{departures} departures, p99 {p99:.2} frames late, inconclusive"))
}

/// A run whose switches stand still for nine tenths of the time; the verdict, and frame-hops.
fn starved(text: &str) -> Result<(Fidelity, u64)> {
    let scenario = stage::read(text)?;
    let lab = render(&scenario);
    let scratch = tempfile::tempdir().map_err(Failure::of_host)?;
    let job = Job { dilation: dilation(1), ..Job::new(&scenario, &lab, scratch.path()) };
    let hosting = Hosting::new(&lab.fabric.wiring, Placement::Worker, 2);
    let switches = hosting.kinds.iter().position(|kind| *kind == NodeKind::Switch);
    let switches = switches.ok_or("no process hosts switches")?;
    let setting = Setup::new(hosting, Cabling::on_loopback(&job));
    let player = move |opening: &RunStart| {
        while !opening.is_over() {
            let held = opening.suspend(switches);
            opening.wait_until(opening.in_wall_ns(90_000_000));
            drop(held);
            opening.wait_until(opening.in_wall_ns(10_000_000));
        }
    };
    let played = tester::run(&job, setting, player).map_err(stage::died)?;
    let evidence = evidence(&played.reports, played.missed);
    let departures = played.reports.iter().map(|report| report.departures).sum();
    Ok((judge(&evidence, NonZeroU64::new(job.dilation).unwrap_or(NonZeroU64::MIN)), departures))
}
