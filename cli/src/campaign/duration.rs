//! How long runs will take: said before long ones, and by `--dry-run` alone.

use launch::calibration::Calibration;
use launch::experiment::{Conditions, Experiment};
use launch::{estimate, substrate};
use scenario::Scenario;
use scenario::render::render;
use scenario::run::{Backend, Pace};
use std::sync::OnceLock;

/// The fabric on which the speed of the virtual clock is measured, and for how long.
const FABRIC: &str = include_str!("../../../topo/scenarios/host/calibrate.toml");
const SETS: [&str; 2] = ["run.backend=\"virtual\"", "run.duration=\"300 mtu\""];

/// Frame-hops of a thread in a second, as long as nothing is measured.
const USUAL_SPEED: f64 = 1.0e6;
/// A run that takes less than this is not announced, in seconds.
pub const LONG_S: f64 = 10.0;
/// With exact pace a frame-hop costs at least this many times as much as on the virtual clock: docs/performance.md 3.
const EXACT_FACTOR: f64 = 2.5;

/// The wall time of a run in seconds, by what this host does in a second.
pub fn seconds(scenario: &Scenario, threads: usize, speed: f64) -> f64 {
    let lab = render(scenario);
    let virtual_clock = || estimate::virtual_clock(scenario, &lab, speed, threads);
    match (substrate(scenario.run.backend).is_live, scenario.run.pace) {
        (false, _) => virtual_clock(),
        (true, Pace::Exact) => EXACT_FACTOR * virtual_clock(),
        (true, Pace::Wall) => estimate::run(scenario, &lab, &Calibration::load()).wall_seconds,
    }
}

/// The wall times of runs in seconds. The speed of this host is measured if they may be long, or if `exactly`.
pub fn all<'a>(
    scenarios: impl Iterator<Item = &'a Scenario> + Clone,
    threads: usize,
    exactly: bool,
) -> Vec<f64> {
    let with =
        |speed| scenarios.clone().map(|one| seconds(one, threads, speed)).collect::<Vec<_>>();
    let usual = with(USUAL_SPEED);
    let is_virtual =
        |one: &Scenario| one.run.backend == Backend::Virtual || one.run.pace == Pace::Exact;
    let is_long = exactly || usual.iter().sum::<f64>() > LONG_S / 2.0;
    if is_long && scenarios.clone().any(is_virtual) { with(speed()) } else { usual }
}

/// Frame-hops of a thread in a second on the virtual clock, measured once by a short run.
fn speed() -> f64 {
    static SPEED: OnceLock<f64> = OnceLock::new();
    *SPEED.get_or_init(|| {
        let scenario = Scenario::parse(FABRIC, &SETS.map(str::to_owned));
        let scenario = scenario.expect("the scenario is part of the program and tested");
        let conditions = Conditions::new(substrate(Backend::Virtual), "");
        match Experiment::run(&scenario, conditions, &mut |_| {}) {
            Ok(run) => run.outcome.frame_hops as f64 / run.outcome.wall_seconds.max(1e-3),
            // Ctrl-C: the runs will not start either.
            Err(_) => USUAL_SPEED,
        }
    })
}

/// A duration in words.
pub fn words(seconds: f64) -> String {
    match seconds {
        ..1.0 => "less than a second".to_owned(),
        1.0..100.0 => format!("about {seconds:.0} s"),
        100.0..6000.0 => format!("about {:.0} min", seconds / 60.0),
        _ => format!("about {:.1} hours", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_grows_with_the_run_and_its_order_is_right() {
        let text = include_str!("../../../topo/scenarios/pfister/demo-none.toml");
        let of = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let scenario = Scenario::parse(text, &sets).expect("it is in the repository");
            seconds(&scenario, 1, 1.0e6)
        };
        // 0.81 M frame-hops were counted (docs/performance.md 2): the congestion tree holds back what is offered.
        let usual = of(&[]);
        assert!((0.8..2.4).contains(&usual), "{usual}");
        let exact = of(&["run.backend=\"udp\"", "run.pace=\"exact\""]);
        assert!((exact / usual - EXACT_FACTOR).abs() < 0.01);
        let live = of(&["run.backend=\"udp\"", "run.dilate=1000"]);
        assert!((10.0..15.0).contains(&live), "6000 frame times of 2.1 µs: {live}");
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        let said = [0.2, 42.0, 135.0, 9000.0].map(words);
        assert_eq!(said, ["less than a second", "about 42 s", "about 2 min", "about 2.5 hours"]);
    }
}
