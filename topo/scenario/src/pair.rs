//! A window as a pair of times in a list: its start and its end.

use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use proto::params::quantity;
use proto::units::Instant;

/// The window that `key` gives, if it is there; a fault if it is no window that ends by `end`.
/// `example` is one that would do.
pub fn pair(
    fields: &Fields<'_>,
    key: &str,
    example: &str,
    end: Option<Instant>,
    problems: &mut Problems,
) -> Option<(Instant, Instant)> {
    let edges: Vec<Instant> = fields
        .texts(key)
        .iter()
        .filter_map(|(text, _)| quantity::time(text, fields.scale()).ok())
        .map(|time| Instant::ZERO + time)
        .collect();
    match edges[..] {
        [] => None,
        [from, to] if from < to && end.is_none_or(|end| to <= end) => Some((from, to)),
        _ => {
            let hint = format!("its start and its end: {example}");
            fields.report(problems, key, Complaint::new("not a window within the run", hint));
            None
        }
    }
}
