//! kill -9 of the launcher of a run in containers, at a random moment: the next run removes what is left.

use super::Campaign;
use super::laboratory::{Running, in_repository, pause};
use super::place::INFINIBAND;
use nix::sys::signal::Signal;
use proto::random::Random;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// A sample: starting containers takes seconds.
const KILLS: u64 = 20;

/// Lines of `docker`, or its error.
fn docker(words: &[&str]) -> Result<BTreeSet<String>, String> {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout).lines().map(str::to_owned).collect()),
        false => Err(text(&output.stderr)),
    }
}

/// Containers, networks and volumes of the engine.
fn objects() -> BTreeSet<String> {
    let lists =
        [&["ps", "--all", "--quiet"][..], &["network", "ls", "-q"], &["volume", "ls", "-q"]];
    lists.iter().flat_map(|words| docker(words).expect("the engine answers")).collect()
}

fn kill(seed: u64) -> String {
    let before = objects();
    let mut random = Random::stream(seed, "chaos", "containers");
    let file = in_repository(INFINIBAND);
    let long = ["--backend", "compose", "--no-report", "--set", "run.duration=\"20000 mtu\""];
    let running = Running::start(&file, &long);
    let after_s = random.below(6_000) as f64 / 1e3;
    pause(after_s);
    running.signal(Signal::SIGKILL);
    running.end(10.0);
    let left = objects().difference(&before).count();
    // The last command of the launcher to the engine ends by itself.
    pause(5.0);
    let ended = Running::start(&file, &["--backend", "compose", "--no-report"]).end(120.0);
    assert!(ended.run.is_some(), "{}", ended.talk);
    assert_eq!(objects(), before, "the next run removes all of {left} objects");
    format!("1 kill after {after_s:.1} s; the next run removed {left} objects")
}

/// Kills launchers of runs in containers, where there is an engine.
pub fn kills(campaign: &mut Campaign) {
    let image = format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
    if let Err(reason) = docker(&["image", "inspect", "--format", "{{.Id}}", &image]) {
        return skip::because!(
            "no Docker engine or no image (docker/build.sh builds it): {reason}"
        );
    }
    for seed in 1..=KILLS {
        campaign.part(&format!("seed {seed}"), || kill(seed));
    }
}
