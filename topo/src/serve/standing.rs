//! A lab that is up, looked at again and again: what its devices count between two looks is a bin.
//!
//! Totals are subtracted, so however long nobody looks nothing is missing; bins are longer then. A queue
//! is what it is at the moment of the look.

use super::board::{Board, Host, Seen};
use crate::launch::lab::Record;
use crate::launch::lab::client::{self, ClientError};
use emulation::daemon::admin::view::{Baseline, Counters, PortCounters, Status};
use emulation::recorder::bins::Slot;
use proto::units::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

const PER_MILLE: f64 = 1e3;

/// Somebody who looks at a lab.
pub struct Watch {
    record: Record,
    board: Arc<Board>,
    places: BTreeMap<String, usize>,
    before: Vec<Counters>,
    end: Instant,
}

impl Watch {
    /// Who enters what `record`'s lab does on `board`, from the first look on.
    pub fn new(record: Record, board: Arc<Board>) -> Watch {
        let names = board.outputs().all.iter().enumerate();
        let places = names.map(|(place, output)| (output.name.clone(), place)).collect();
        Watch { record, board, places, before: Vec::new(), end: Instant::ZERO }
    }

    /// Looks once.
    ///
    /// # Errors
    /// If a daemon does not answer.
    pub fn look(&mut self) -> Result<(), ClientError> {
        let mut now = client::counters(&self.record)?;
        let flows = now.iter_mut().flat_map(|daemon| &mut daemon.nodes);
        flows.for_each(|node| node.flows.clear());
        let host = host(&client::status(&self.record)?);
        self.enter(now, host);
        Ok(())
    }

    /// Enters what has been counted since the look before; a first look only begins.
    fn enter(&mut self, now: Vec<Counters>, host: Host) {
        let reached = now.iter().map(|daemon| daemon.at_ps).max().unwrap_or(0);
        let (begin, end) = (self.end, Instant::from_ps(reached));
        let before = std::mem::replace(&mut self.before, now);
        self.end = end;
        if before.len() != self.before.len() || end <= begin {
            return;
        }
        let slot = Slot { number: 0, begin, end };
        let mut seen = Seen { slot, sights: vec![None; self.places.len()], drops: 0 };
        for (before, now) in before.iter().zip(&self.before) {
            let (length_ps, done) = since(before, now);
            for port in done.nodes.iter().flat_map(|node| &node.ports) {
                let Some(place) = self.places.get(&port.port).copied() else { continue };
                let [hold_ps, queue, sent] = in_all(port);
                let sight = self.board.sight(place, length_ps, hold_ps, queue, sent);
                seen.sights[place] = Some(sight);
                seen.drops += port.drops.values().sum::<u64>();
            }
        }
        self.board.enter_bin(&seen, host);
    }
}

/// What a daemon has counted from one look to the next, and in which time. Between them somebody may have
/// let the counters begin at zero.
fn since(before: &Counters, now: &Counters) -> (u64, Counters) {
    if now.cleared_ps != before.cleared_ps {
        return (now.at_ps.saturating_sub(now.cleared_ps.unwrap_or(0)), now.clone());
    }
    let length_ps = now.at_ps.saturating_sub(before.at_ps);
    (length_ps, now.clone().since(&Baseline::of(before.clone())))
}

/// All lanes of a port: time held on the lane where that was longest, octets that wait, octets sent.
fn in_all(port: &PortCounters) -> [u64; 3] {
    let lanes = || port.lanes.iter();
    [
        lanes().map(|lane| lane.wait_ps).max().unwrap_or(0),
        lanes().map(|lane| lane.out_queue.now).sum(),
        lanes().map(|lane| lane.tx_bytes).sum(),
    ]
}

fn host(daemons: &[Status]) -> Host {
    let late = daemons.iter().map(|daemon| daemon.late_p99_thousandths).max();
    Host {
        late_p99_frames: late.map(|late| late as f64 / PER_MILLE),
        lost: daemons.iter().map(|daemon| daemon.lost).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{board, record};
    use emulation::daemon::admin::view::{LaneCounters, Level, NodeCounters};
    use emulation::wiring::NodeKind;

    /// A daemon whose port h0:1 has sent so many octets and was held so long.
    fn counted(at_ps: u64, tx_bytes: u64, wait_ps: u64) -> Counters {
        let out_queue = Level { now: 36 * 2048, most: 0 };
        let lane = LaneCounters { tx_bytes, wait_ps, out_queue, ..LaneCounters::default() };
        let port =
            PortCounters { port: "h0:1".to_owned(), lanes: vec![lane], ..PortCounters::default() };
        let node = NodeCounters {
            node: "h0".to_owned(),
            kind: NodeKind::Nic,
            ports: vec![port],
            flows: Vec::new(),
        };
        Counters { at_ps, cleared_ps: None, nodes: vec![node] }
    }

    #[test]
    fn between_two_looks_lies_a_bin_however_long() {
        let (_, board) = board();
        let mut watch = Watch::new(record("two"), Arc::clone(&board));
        let mut look = |counted: Counters| watch.enter(vec![counted], Host::default());
        look(counted(1_000_000, 500, 0));
        assert_eq!(board.now().0, 0, "the first look only begins");
        // 8 Gbit/s for half of the time, held for a fifth.
        look(counted(11_000_000, 5_500, 2_000_000));
        look(counted(11_000_000, 5_500, 2_000_000));
        assert_eq!(board.now().0, 1, "where time stands still there is no bin");
        // Somebody has let the counters begin at zero: a whole line since then.
        let cleared = Counters { cleared_ps: Some(12_000_000), ..counted(14_000_000, 2_000, 0) };
        look(cleared);
        let rows = board.rows_from(0);
        let octets: Vec<&[u8]> = rows.iter().map(|row| &row.octets[..4]).collect();
        assert_eq!(octets, [[120, 0x3f, 255, 0], [240, 0x0f, 255, 0]]);
        assert_eq!(rows[1].end_ps, 14_000_000);
    }
}
