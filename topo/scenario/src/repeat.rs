//! `times` and `every`: what comes again and again, traffic or windows.

use crate::keyfile::fields::Fields;
use proto::units::{Duration, Instant};

/// More repetitions than this are a mistake: each is an item or a window of its own.
pub const REPEATS_MAX: i64 = 1024;

/// How often, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// How often in all, at least twice.
    pub times: u32,
    /// From the start of one to the start of the next.
    pub every: Duration,
}

/// Checks the values of both keys; `None` for what comes once, from `first` to `stop`.
pub fn repeat(
    fields: &Fields<'_>,
    (times, every): (u32, Option<Duration>),
    (first, stop): (Instant, Instant),
    end: Instant,
) -> Option<Repeat> {
    let Some(every) = every else {
        if times > 1 {
            fields.error("times", "times needs every", "every = \"2000 mtu\"");
        }
        return None;
    };
    let over = stop + every * u64::from(times - 1);
    if times == 1 {
        fields.refuse("every", "every needs times", "times = 16")
    } else if every < stop.since(first) {
        fields.refuse("every", "the next begins before one is over", "a longer every")
    } else if over > end {
        let late = fields.in_frames(over.since(end));
        fields.refuse("every", format!("the last ends {late} after the run"), "see run.duration")
    } else {
        Some(Repeat { times, every })
    }
}
