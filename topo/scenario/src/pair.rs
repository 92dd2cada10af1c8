//! A window as a pair of times in a list: its start and its end.

use crate::keyfile::fields::Fields;
use proto::units::Instant;

/// The window that the value of `key` gives, if there is one; a fault if it is not a window that ends by
/// `end`. `example` is one that would do.
pub fn pair(
    fields: &Fields<'_>,
    key: &str,
    example: &str,
    edges: Option<&[Instant]>,
    end: Instant,
) -> Option<(Instant, Instant)> {
    match *edges? {
        [from, to] if from < to && to <= end => Some((from, to)),
        _ => {
            let hint = format!("its start and its end: {example}");
            fields.refuse(key, "not a window within the run", hint)
        }
    }
}
