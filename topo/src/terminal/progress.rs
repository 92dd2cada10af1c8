//! Progress of a run: a bar on a terminal, a plain line every few seconds elsewhere.

use emulation::clock::Stopwatch;
use emulation::fidelity::verdict::LATENESS_LIMIT;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use launch::Progress;
use proto::units::{Duration, Instant};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

/// The interval of plain lines, in seconds.
const LINE_EVERY_S: f64 = 5.0;

/// The progress of one run.
pub struct RunProgress {
    bar: Option<ProgressBar>,
    name: String,
    tau: Duration,
    stop: Instant,
    phases: Vec<(Instant, String)>,
    last_line: Stopwatch,
}

impl RunProgress {
    /// Progress of the run `name`, which ends at `stop`; `quiet` shows nothing.
    pub fn new(
        name: &str,
        tau: Duration,
        stop: Instant,
        phases: Vec<(Instant, String)>,
        quiet: bool,
    ) -> RunProgress {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !quiet).then(|| {
            let total = stop.as_ps() / tau.as_ps().max(1);
            bar(name, total, "{prefix}  {bar:32} {pos}/{len} τ  {msg}  {eta} left")
        });
        let last_line = Stopwatch::start();
        RunProgress { bar, name: name.to_owned(), tau, stop, phases, last_line }
    }

    /// Shows new progress.
    pub fn update(&mut self, progress: Progress, quiet: bool) {
        let done = progress.at.as_ps() / self.tau.as_ps().max(1);
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{}{}", self.phase(progress.at), fidelity(progress)));
        } else if !quiet && self.last_line.seconds() > LINE_EVERY_S {
            self.last_line = Stopwatch::start();
            let total = self.stop.as_ps() / self.tau.as_ps().max(1);
            eprintln!("{}: {done} of {total} τ{}", self.name, fidelity(progress));
        }
    }

    fn phase(&self, at: Instant) -> String {
        let current = self.phases.iter().rev().find(|(start, _)| *start <= at);
        current.map_or(String::new(), |(_, name)| format!("{name} "))
    }

    /// Ends the display.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(name: &str, total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
    bar.set_prefix(name.to_owned());
    bar
}

/// The fidelity so far, as text.
fn fidelity(progress: Progress) -> String {
    let Some(late) = progress.late_p99_frames else { return String::new() };
    let limit = LATENESS_LIMIT as f64 / 1_000.0;
    let sign = if late <= limit && progress.lost == 0 { "✓" } else { "✕" };
    let lost = if progress.lost > 0 { format!(", {} lost", progress.lost) } else { String::new() };
    format!(" late p99 {late:.2}{lost} {sign}")
}

/// The progress of a search: runs made, of the maximum.
pub struct SearchProgress {
    bar: Option<ProgressBar>,
    name: String,
    runs: u64,
    began: Stopwatch,
    printed: Mutex<(u64, Stopwatch)>,
}

impl SearchProgress {
    /// Progress of the search `name` with at most `runs` runs.
    pub fn new(name: &str, runs: u64) -> SearchProgress {
        let bar = std::io::stderr().is_terminal().then(|| {
            bar(name, runs, "{prefix}  {bar:32} {pos} of at most {len} runs  at most {eta} left")
        });
        let printed = Mutex::new((0, Stopwatch::start()));
        SearchProgress { bar, name: name.to_owned(), runs, began: Stopwatch::start(), printed }
    }

    /// Counts one more run.
    pub fn count_run(&self) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.0 += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(printed.0);
        } else if printed.1.seconds() > LINE_EVERY_S {
            printed.1 = Stopwatch::start();
            let left = self.runs.saturating_sub(printed.0) as f64 / printed.0 as f64;
            eprintln!(
                "{}: {} of at most {} runs, at most {:.0} s left",
                self.name,
                printed.0,
                self.runs,
                left * self.began.seconds()
            );
        }
    }

    /// Ends the display.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
