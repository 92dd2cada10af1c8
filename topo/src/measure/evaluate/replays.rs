//! How long a trace took, beside the least that it can take.

use super::{RunData, flows, flows_at, number_in, over};
use crate::measure::Measure;

/// From the trace's start to the departure of its last frame, over the least time.
pub fn over_ideal(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let mut replays = run.fabric.replays.iter();
    let found = replays.find(|(item, _)| measure.items.is_empty() || measure.items.contains(item));
    let (item, (start, ideal, messages)) = found.ok_or("no trace is replayed")?;
    let (mut last, mut completed) = (*start, 0);
    for pair in flows(measure)? {
        let items = run.fabric.items.get(pair.0).map_or(&[][..], Vec::as_slice);
        let own = items.iter().position(|other| other == item);
        for flow in flows_at(run, *pair, measure.to)?.0 {
            if flow.items.iter().any(|index| Some(usize::from(*index)) == own) {
                completed += flow.completed;
                last = flow.last.map_or(last, |at| last.max(at));
            }
        }
    }
    if completed != *messages {
        return Err(format!("{completed} of its {messages} messages were complete"));
    }
    number_in(measure.per, last.since(*start).as_ps() as f64 / over(ideal.as_ps() as f64)?)
}
