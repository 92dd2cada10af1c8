//! `times` and `every`: what comes again and again, traffic or windows.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
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

/// Reads both keys; `None` for what comes once. Whatever has them begins and ends by `start` and
/// `stop` or by `from` and `to`.
pub fn repeat(
    fields: &Fields<'_>,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Option<Repeat> {
    let times = u32::try_from(fields.whole::<i64>("times")?).ok()?;
    let every = fields.time("every");
    let complaint = match (times, every) {
        (1, None) => return None,
        (1, Some(_)) => Complaint::new("every needs times", "times = 16"),
        (_, None) => Complaint::new("how far apart?", "every = \"2000 mtu\""),
        (_, Some(every)) => {
            let of = |keys: [&str; 2]| keys.iter().find_map(|key| fields.instant(key));
            let (first, stop) = (of(["start", "from"])?, of(["stop", "to"]));
            let length = stop.or(end)?.since(first);
            let over = stop.or(end)? + every * u64::from(times - 1);
            if every < length {
                Complaint::new("the next begins before one is over", "a longer every")
            } else if end.is_some_and(|end| over > end) {
                let late = fields.in_frames(over.since(end?));
                Complaint::new(format!("the last ends {late} after the run"), "see run.duration")
            } else {
                return Some(Repeat { times, every });
            }
        }
    };
    let key = if every.is_some() { "every" } else { "times" };
    fields.report(problems, key, complaint);
    None
}
