//! Whether verdicts stay the same from run to run.

use super::{Place, dut};
use dut::statement::Statement;
use dut::verdict::Verdict;
use emulation::cable::namespace::Namespace;
use pausebed_tests::campaign::Campaign;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Runs of each suite.
const RUNS: usize = 10;
/// The devices of this repository's files that start by themselves.
const DEVICES: [&str; 6] =
    ["linux-bridge", "ours-switchd", "ours-nicd", "soft-roce", "linux-tc", "open-vswitch"];

/// A thread that uses a core.
struct Busy {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    fn start() -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Busy { over, thread: Some(thread) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does nothing");
        }
    }
}

/// One run as words `case=verdict`; none if the device cannot be started here.
fn verdicts(device: &str) -> String {
    let mut place = Place::new();
    if device == "open-vswitch" {
        // Its hooks make interfaces.
        place.namespace = Namespace::make(1).ok().and_then(|mut made| made.pop());
    }
    let output = place.run(&["check", "--dut", &dut(device), "--allow-hooks", "--json"]);
    let Ok(statement) = Statement::parse(&String::from_utf8_lossy(&output.stdout)) else {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return format!("absent: {}", said.lines().last().unwrap_or_default());
    };
    for one in &statement.outcomes {
        if matches!(one.verdict, Verdict::Fail | Verdict::Inconclusive) {
            println!("{device} {} {}: {}", one.id, one.verdict.word(), one.observed);
        }
    }
    let asked = statement.outcomes.iter().filter(|one| one.verdict != Verdict::NotImplemented);
    asked.map(|one| format!("{}={}", one.id, one.verdict.word())).collect::<Vec<_>>().join(" ")
}

/// Runs every suite [`RUNS`] times. No case may be both PASS and FAIL, and at most so many in a hundred INCONCLUSIVE.
pub fn measure(campaign: &str, is_busy: bool, inconclusive_max: usize) {
    let mut campaign = Campaign::open(campaign);
    let _busy = is_busy.then(Busy::start);
    let mut faults = Vec::new();
    for device in DEVICES {
        let mut by_case: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let (mut asked, mut inconclusive) = (0, 0);
        for run in 1..=RUNS {
            let said = campaign.part(&format!("{device} {run}"), || verdicts(device));
            for (case, verdict) in said.split(' ').filter_map(|word| word.split_once('=')) {
                asked += 1;
                inconclusive += usize::from(verdict == Verdict::Inconclusive.word());
                by_case.entry(case.to_owned()).or_default().insert(verdict.to_owned());
            }
        }
        let changes = |(_, seen): &(&String, &BTreeSet<String>)| seen.len() > 1;
        let changing: Vec<_> = by_case.iter().filter(changes).collect();
        println!("{device}: {inconclusive} of {asked} INCONCLUSIVE; changing: {changing:?}");
        let both = [Verdict::Pass.word(), Verdict::Fail.word()];
        let flips =
            changing.iter().filter(|(_, seen)| both.iter().all(|word| seen.contains(*word)));
        if flips.count() > 0 || inconclusive * 100 > asked * inconclusive_max {
            faults.push(device);
        }
    }
    campaign.end();
    assert!(faults.is_empty(), "{faults:?}");
}
