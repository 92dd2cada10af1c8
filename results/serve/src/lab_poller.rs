//! Polls the counters of a lab: the difference between two polls is a bin.
//!
//! Counters are totals, so a longer interval loses nothing; its bin is longer. A queue length is the value at the
//! poll.

use super::live_state::{HostState, LiveBin, LiveState};
use daemon::admin::view::{OutputCounters, Outputs};
use emulation::recorder::bins::Slot;
use launch::lab::LabRecord;
use launch::lab::client::{self, ClientError};
use proto::units::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

const PER_MILLE: f64 = 1e3;

/// The poller of one lab.
pub struct LabPoller {
    record: LabRecord,
    state: Arc<LiveState>,
    /// The index of each daemon's ports in the live state; a daemon lists its ports in a constant order.
    places: Vec<Vec<Option<usize>>>,
    before: Vec<Outputs>,
    end: Instant,
}

impl LabPoller {
    /// A poller that adds bins of `record`'s lab to `state`.
    pub fn new(record: LabRecord, state: Arc<LiveState>) -> LabPoller {
        LabPoller { record, state, places: Vec::new(), before: Vec::new(), end: Instant::ZERO }
    }

    /// Polls once.
    ///
    /// # Errors
    /// If a daemon does not answer.
    pub fn poll(&mut self) -> Result<(), ClientError> {
        self.add(client::outputs(&self.record)?);
        Ok(())
    }

    /// Adds the difference to the last poll; the first poll adds nothing.
    fn add(&mut self, now: Vec<Outputs>) {
        let reached = now.iter().map(|daemon| daemon.at_ps).max().unwrap_or(0);
        let (begin, end) = (self.end, Instant::from_ps(reached));
        let before = std::mem::replace(&mut self.before, now);
        self.end = end;
        if before.len() != self.before.len() {
            self.places = self.places();
            return;
        }
        if end <= begin {
            return;
        }
        let slot = Slot { number: 0, begin, end };
        let outputs = self.state.outputs.all.len();
        let mut bin = LiveBin { slot, samples: vec![None; outputs], drops: 0 };
        for ((before, now), places) in before.iter().zip(&self.before).zip(&self.places) {
            let length_ps = now.at_ps.saturating_sub(before.at_ps);
            for ((before, now), place) in before.ports.iter().zip(&now.ports).zip(places) {
                let Some(place) = *place else { continue };
                let (hold_ps, sent) = (held(before, now), now.tx_bytes - before.tx_bytes);
                let sample = self.state.sample(place, length_ps, hold_ps, now.queue, sent);
                bin.samples[place] = Some(sample);
                bin.drops += now.drops - before.drops;
            }
        }
        self.state.add_bin(&bin, host(&self.before));
    }

    fn places(&self) -> Vec<Vec<Option<usize>>> {
        let names = self.state.outputs.all.iter().enumerate();
        let known: BTreeMap<&str, usize> =
            names.map(|(place, output)| (output.name.as_str(), place)).collect();
        let of = |daemon: &Outputs| {
            daemon.ports.iter().map(|port| known.get(port.port.as_str()).copied()).collect()
        };
        self.before.iter().map(of).collect()
    }
}

/// The time held on the lane with the maximum, in ps.
fn held(before: &OutputCounters, now: &OutputCounters) -> u64 {
    let lanes = before.wait_ps.iter().zip(&now.wait_ps);
    lanes.map(|(before, now)| now - before).max().unwrap_or(0)
}

fn host(daemons: &[Outputs]) -> HostState {
    let late = daemons.iter().filter_map(|daemon| daemon.late_p99_thousandths).max();
    HostState {
        late_p99_frames: late.map(|late| late as f64 / PER_MILLE),
        lost: daemons.iter().map(|daemon| daemon.lost).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{live_state, record};

    /// A daemon with these counters of port h0:1; the hold is on its second lane.
    fn counted(at_ps: u64, tx_bytes: u64, wait_ps: u64) -> Outputs {
        let port = OutputCounters {
            port: "h0:1".to_owned(),
            wait_ps: vec![1_000, wait_ps],
            queue: 36 * 2048,
            tx_bytes,
            drops: 0,
        };
        Outputs { at_ps, ports: vec![port], ..Outputs::default() }
    }

    #[test]
    fn the_difference_between_two_polls_is_a_bin_of_any_length() {
        let (_, state) = live_state();
        let mut poller = LabPoller::new(record("two"), Arc::clone(&state));
        let mut poll = |counted: Outputs| poller.add(vec![counted]);
        poll(counted(1_000_000, 500, 0));
        assert_eq!(state.summary().0, 0, "the first poll adds nothing");
        // 8 Gbit/s for half of the time, held for a fifth.
        poll(counted(11_000_000, 5_500, 2_000_000));
        poll(counted(11_000_000, 5_500, 2_000_000));
        assert_eq!(state.summary().0, 1, "without progress there is no bin");
        // A whole line, never held, with a frame lost.
        let mut later = counted(13_000_000, 7_500, 2_000_000);
        (later.lost, later.ports[0].drops) = (3, 1);
        poll(later);
        let rows = state.rows_from(0);
        let octets: Vec<&[u8]> = rows.iter().map(|row| &row.octets[..4]).collect();
        assert_eq!(octets, [[120, 0x3f, 255, 0], [240, 0x0f, 255, 0]]);
        assert_eq!(rows[1].end_ps, 13_000_000);
        assert_eq!(state.summary().1["lost"], 3);
        let notes: Vec<_> = state.notes_after(0).into_iter().map(|note| note.text).collect();
        assert!(notes.iter().any(|note| note["kind"] == "drop"), "{notes:?}");
    }
}
