//! Shares of flows of a line, rates of notifications, and shares of marked frames.

use super::per_flow::{grown, sent};
use super::{RunData, flows, growth, named, number_in, over, ports, reduce};
use emulation::wiring::End;
use proto::counters::PortReading;
use proto::events::{Direction, EventKind, NoteKind};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};
use scenario::measure::windows::parts;
use scenario::measure::{Marked, Measure, Quantity};

/// Octets of data frames that each pair sent, as a share of what the receiver's line could carry.
pub fn share(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let mut shares = Vec::new();
    for pair in flows(measure)? {
        let octets = sent(measure, run, *pair)?;
        let [ps] = grown(measure, |edge| Ok([run.at(pair.0, edge)?.1.as_ps()]))?;
        let receiver = End { node: pair.1, port: PortNumber::from_index(0) };
        let line = run.fabric.line_rate(receiver)?.get() as f64;
        shares.push(octets as f64 * 8e12 / over(ps as f64)? / line);
    }
    number_in(measure.per, reduce(shares, measure.reduce)?)
}

/// The share of marked frames among the frames that could be marked and met a queue in that band at the ports.
pub fn marked(measure: &Measure, band: Marked, run: &RunData<'_>) -> Result<f64, String> {
    let &[packets, marks] = Quantity::Marked(band).named() else {
        return Err("it is computed from two counters".to_owned());
    };
    let total = |ending| move |reading: &PortReading| named(reading, &[ending]).into();
    let (mut frames, mut marked) = (0.0, 0.0);
    for (end, _) in ports(measure)? {
        frames += growth(run, *end, &parts(measure), total(packets))?.0;
        marked += growth(run, *end, &parts(measure), total(marks))?.0;
    }
    if frames == 0.0 {
        return Err("no frame that could be marked met such a queue".to_owned());
    }
    number_in(measure.per, marked / frames)
}

/// The largest number of congestion notifications about one pair that its receiver sent within any interval
/// of the length of the measure's bin, the end excluded.
pub fn notices(measure: &Measure, run: &RunData<'_>) -> Result<f64, String> {
    let interval = measure.bin.ok_or("it needs a bin: the interval")?;
    let mut most = 0;
    for (from, to) in flows(measure)? {
        let source = run.address(*from);
        let mut sent = Vec::new();
        for recording in run.recordings {
            let folded = &recording.events.folded;
            if folded.iter().any(|folded| folded.at.node == *to && folded.kind == "note") {
                let receiver = run.fabric.node_name(*to);
                return Err(format!(
                    "{receiver} received too many notifications: set all_events = true"
                ));
            }
            sent.extend(recording.events.events.iter().filter_map(|logged| {
                let about = match logged.event.kind {
                    EventKind::Note { flow, note: NoteKind::Cnp, dir: Direction::Tx } => flow,
                    _ => return None,
                };
                let is_ours = logged.node as usize == *to && about.source == source;
                is_ours.then_some(logged.event.at)
            }));
        }
        sent.retain(|at| parts(measure).iter().any(|(from, to)| from <= at && at < to));
        most = most.max(most_within(&mut sent, interval));
    }
    number_in(measure.per, most as f64)
}

/// The number of instants within the fullest half-open interval of that length.
fn most_within(instants: &mut [Instant], interval: Duration) -> usize {
    instants.sort_unstable();
    let count = |(index, first): (usize, &Instant)| {
        let end = *first + interval;
        instants[index..].iter().take_while(|at| **at < end).count()
    };
    instants.iter().enumerate().map(count).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_begins_with_an_instant_and_leaves_its_end_out() {
        let mut at: Vec<Instant> = [0, 50, 99, 100, 150].map(Instant::from_ps).to_vec();
        let within = |at: &mut [Instant], ps| most_within(at, Duration::from_ps(ps));
        assert_eq!(within(&mut at, 50), 2, "99 and 100");
        assert_eq!(within(&mut at, 51), 3, "50 to 100");
        assert_eq!(within(&mut at, 1_000), 5);
        assert_eq!(within(&mut [], 50), 0);
    }
}
