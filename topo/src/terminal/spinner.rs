//! What is being waited for, and for how long already: one line on a terminal, nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// A line on standard error that goes away when the wait is over.
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Begins to wait for `what`.
    pub fn start(what: &str) -> Spinner {
        // Hidden by itself where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {msg}");
        bar.set_style(style.expect("the template is ours"));
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(TICK);
        Spinner(bar)
    }

    /// Something worth knowing has happened meanwhile.
    pub fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// The wait is over.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
