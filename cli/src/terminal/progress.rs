//! Progress of a run: a bar on a terminal, a plain line every few seconds elsewhere.

use emulation::clock::Stopwatch;
use emulation::fidelity::verdict::LATENESS_LIMIT;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use launch::{Progress, output};
use proto::units::Duration;
use scenario::phases::Phase;
use scenario::render::Lab;
use std::sync::{Mutex, PoisonError};

/// The interval of plain lines, in seconds.
const LINE_EVERY_S: f64 = 5.0;

/// The progress of one run.
pub struct RunProgress {
    bar: ProgressBar,
    quiet: bool,
    tau: Duration,
    phases: Vec<Phase>,
    last_line: Stopwatch,
    /// The dilation shown last.
    dilation: Option<u64>,
    /// Whether lateness decides about the run: the clock of programs outside cannot be slowed.
    judges_lateness: bool,
}

impl RunProgress {
    /// Progress of the run `name` of `lab`; `quiet` shows nothing.
    pub fn new(name: &str, lab: &Lab, quiet: bool) -> RunProgress {
        let (tau, phases, last_line) = (lab.fabric.tau, lab.phases.clone(), Stopwatch::start());
        let total = lab.plan.stop.as_ps() / tau.as_ps().max(1);
        let template = "{prefix}  {bar:20} {pos}/{len} τ  {msg}  {eta} left";
        let bar = bar(name, Some(total), &output::shown(template, None));
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let judges_lateness = lab.fabric.wiring.attached.is_empty();
        RunProgress { bar, quiet, tau, phases, last_line, dilation: None, judges_lateness }
    }

    /// Shows new progress.
    pub fn update(&mut self, progress: Progress) {
        let done = progress.at.as_ps() / self.tau.as_ps().max(1);
        self.show_change(done, progress.dilation);
        if !self.bar.is_hidden() {
            self.bar.set_position(done);
            let phase = self.phases.iter().rev().find(|phase| phase.start <= progress.at);
            let phase = phase.map_or(String::new(), |phase| format!("{} ", phase.name));
            let message = format!("{phase}{}", self.fidelity(progress));
            self.bar.set_message(output::shown(&message, None).into_owned());
        } else if !self.quiet && self.last_line.seconds() > LINE_EVERY_S {
            self.last_line = Stopwatch::start();
            let (name, total) = (self.bar.prefix(), self.bar.length().unwrap_or(0));
            eprintln!("{name}: {done} of {total} τ{}", self.fidelity(progress));
        }
    }

    /// Prints that the clock was changed.
    fn show_change(&mut self, done: u64, dilation: u64) {
        let before = self.dilation.replace(dilation).unwrap_or(dilation);
        if before == dilation || self.quiet {
            return;
        }
        let why = if dilation > before { "the host falls behind" } else { "the host has room" };
        let name = self.bar.prefix();
        self.bar
            .suspend(|| eprintln!("{name}: {before}× → {dilation}× slowed after {done} τ: {why}"));
    }

    /// The fidelity so far, as text.
    fn fidelity(&self, progress: Progress) -> String {
        let lost =
            if progress.lost > 0 { format!(", {} lost", progress.lost) } else { String::new() };
        let Some(late) = progress.late_p99_frames else { return lost };
        let is_late = self.judges_lateness && late > LATENESS_LIMIT as f64 / 1_000.0;
        let sign = if is_late || progress.lost > 0 { "✕" } else { "✓" };
        format!(" late p99 {late:.2}{lost} {sign}")
    }

    /// Ends the display.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// A line on standard error that disappears at its end, hidden if standard error is not a terminal.
fn bar(name: &str, total: Option<u64>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let mut style = ProgressStyle::with_template(template).expect("the template is valid");
    if !output::terminal().unicode {
        style = style.progress_chars("#> ").tick_chars("|/-\\ ");
    }
    if output::is_quiet() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.set_style(style);
    bar.set_prefix(name.to_owned());
    bar
}

/// A line that shows the wait for `what` and its duration.
pub fn spinner(what: &str) -> ProgressBar {
    const TICK: std::time::Duration = std::time::Duration::from_millis(100);
    let bar = bar(what, None, "{spinner} {prefix}  {elapsed}  {msg}");
    bar.enable_steady_tick(TICK);
    bar
}

/// The progress of a known number of runs, or of a search that makes at most so many.
pub struct SearchProgress {
    bar: ProgressBar,
    /// What stands before the number of all runs, and before the time that is left.
    words: [&'static str; 2],
    began: Stopwatch,
    /// Runs that have ended, and the time since the last line. A lock, because runs end on several threads.
    printed: Mutex<(u64, Stopwatch)>,
}

impl SearchProgress {
    /// Progress of `runs` runs of `name`.
    pub fn of(name: &str, runs: u64) -> SearchProgress {
        SearchProgress::new(name, runs, ["", "about "])
    }

    /// Progress of the search `name`, which makes at most `runs` runs.
    pub fn at_most(name: &str, runs: u64) -> SearchProgress {
        SearchProgress::new(name, runs, ["at most ", "at most "])
    }

    fn new(name: &str, runs: u64, words: [&'static str; 2]) -> SearchProgress {
        let [all, left] = words;
        let template =
            format!("{{prefix}}  {{bar:20}} {{pos}} of {all}{{len}} runs  {left}{{eta}} left");
        let (bar, began) = (bar(name, Some(runs), &template), Stopwatch::start());
        SearchProgress { bar, words, began, printed: Mutex::new((0, began)) }
    }

    /// Takes the bar off the terminal while `print` prints.
    pub fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Counts a run that has ended.
    pub fn count_run(&self) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.0 += 1;
        if !self.bar.is_hidden() {
            self.bar.set_position(printed.0);
        } else if printed.1.seconds() > LINE_EVERY_S {
            printed.1 = Stopwatch::start();
            let (name, runs) = (self.bar.prefix(), self.bar.length().unwrap_or(0));
            let (done, left) = (printed.0, runs.saturating_sub(printed.0));
            let seconds = left as f64 / done as f64 * self.began.seconds();
            let [all, remaining] = self.words;
            eprintln!("{name}: {done} of {all}{runs} runs, {remaining}{seconds:.0} s left");
        }
    }

    /// Ends the display.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
