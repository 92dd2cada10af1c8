//! Progress of a run: a bar with the time left on a terminal, a plain line now and then elsewhere.

use emulation::clock::Stopwatch;
use emulation::fidelity::verdict::LATENESS_LIMIT;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use launch::Progress;
use proto::units::{Duration, Instant};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

/// Seconds between two plain lines.
const LINE_EVERY_S: f64 = 5.0;

/// Shows how far one run is.
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
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style =
                ProgressStyle::with_template("{prefix}  {bar:32} {pos}/{len} τ  {msg}  {eta} left");
            bar.set_style(style.expect("the template is ours"));
            bar.set_prefix(name.to_owned());
            bar
        });
        let last_line = Stopwatch::start();
        RunProgress { bar, name: name.to_owned(), tau, stop, phases, last_line }
    }

    /// The run has got so far.
    pub fn tell(&mut self, progress: Progress, quiet: bool) {
        let done = progress.at.as_ps() / self.tau.as_ps().max(1);
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(format!("{}{}", self.phase(progress.at), light(progress)));
        } else if !quiet && self.last_line.seconds() > LINE_EVERY_S {
            self.last_line = Stopwatch::start();
            let total = self.stop.as_ps() / self.tau.as_ps().max(1);
            eprintln!("{}: {done} of {total} τ{}", self.name, light(progress));
        }
    }

    fn phase(&self, at: Instant) -> String {
        let current = self.phases.iter().rev().find(|(start, _)| *start <= at);
        current.map_or(String::new(), |(_, name)| format!("{name} "))
    }

    /// The run is over.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Whether the run still counts.
fn light(progress: Progress) -> String {
    let Some(late) = progress.late_p99_frames else { return String::new() };
    let limit = LATENESS_LIMIT as f64 / 1_000.0;
    let sign = if late <= limit && progress.lost == 0 { "✓" } else { "✕" };
    let lost = if progress.lost > 0 { format!(", {} lost", progress.lost) } else { String::new() };
    format!(" late p99 {late:.2}{lost} {sign}")
}

/// Shows how far a search is: runs made, of as many as it may make.
pub struct SearchProgress {
    bar: Option<ProgressBar>,
    name: String,
    runs: u64,
    began: Stopwatch,
    told: Mutex<(u64, Stopwatch)>,
}

impl SearchProgress {
    /// Progress of the search `name`, which makes at most `runs`.
    pub fn new(name: &str, runs: u64) -> SearchProgress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(runs), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(
                "{prefix}  {bar:32} {pos} of at most {len} runs  at most {eta} left",
            );
            bar.set_style(style.expect("the template is ours"));
            bar.set_prefix(name.to_owned());
            bar
        });
        let told = Mutex::new((0, Stopwatch::start()));
        SearchProgress { bar, name: name.to_owned(), runs, began: Stopwatch::start(), told }
    }

    /// One more run has been made.
    pub fn ran(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.0 += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(told.0);
        } else if told.1.seconds() > LINE_EVERY_S {
            told.1 = Stopwatch::start();
            let left = self.runs.saturating_sub(told.0) as f64 / told.0 as f64;
            eprintln!(
                "{}: {} of at most {} runs, at most {:.0} s left",
                self.name,
                told.0,
                self.runs,
                left * self.began.seconds()
            );
        }
    }

    /// The search is over.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
