//! The duration of a trace replay over the least possible duration.

use super::{RunData, flows, number_in, over};
use proto::counters::FlowId;
use scenario::inventory::ReplayFacts;
use scenario::measure::Measure;

/// The time from the start of the trace to the delivery of its last message, over the least time.
pub fn over_ideal(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let mut replays = run.fabric.replays.iter();
    let found = replays.find(|(item, _)| measure.items.is_empty() || measure.items.contains(item));
    let (_, ReplayFacts { start, ideal, messages, class }) = found.ok_or("no trace is replayed")?;
    let (mut last, mut delivered) = (*start, 0);
    for (from, to) in flows(measure)? {
        let source = run.address(*from);
        let receptions = run.at(*to, measure.to)?.0.receptions.iter();
        let is_its = |flow: FlowId| flow.source == source && flow.class == *class;
        for reception in receptions.filter(|reception| is_its(reception.flow)) {
            delivered += reception.messages;
            last = reception.last.map_or(last, |at| last.max(at));
        }
    }
    if delivered != *messages {
        return Err(format!("{delivered} of its {messages} messages were delivered"));
    }
    number_in(measure.per, last.since(*start).as_ps() as f64 / over(ideal.as_ps() as f64)?)
}
