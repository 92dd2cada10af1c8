//! A line on a terminal that shows a wait and its duration; nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// The interval at which the line is redrawn.
const TICK: Duration = Duration::from_millis(100);

/// A line on standard error that disappears at the end of the wait.
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Shows the wait for `what`.
    pub fn start(what: &str) -> Spinner {
        // Hidden if standard error is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {msg}");
        bar.set_style(style.expect("the template is valid"));
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(TICK);
        Spinner(bar)
    }

    /// Shows a message beside it.
    pub fn set_message(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Ends the display.
    pub fn finish(self) {
        self.0.finish_and_clear();
    }
}
