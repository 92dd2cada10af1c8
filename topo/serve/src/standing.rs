//! A lab that is up, looked at again and again: what its outputs do between two looks is a bin.
//!
//! Totals are subtracted, so however long nobody looks nothing is missing; bins are longer then. A queue
//! is what it is at the moment of the look.

use super::board::{Board, Host, Seen};
use daemon::admin::view::{OutputCounters, Outputs};
use emulation::recorder::bins::Slot;
use launch::lab::Record;
use launch::lab::client::{self, ClientError};
use proto::units::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

const PER_MILLE: f64 = 1e3;

/// Somebody who looks at a lab.
pub struct Watch {
    record: Record,
    board: Arc<Board>,
    /// Place on the board of each daemon's ports, which it names in an order that stays.
    places: Vec<Vec<Option<usize>>>,
    before: Vec<Outputs>,
    end: Instant,
}

impl Watch {
    /// Who enters what `record`'s lab does on `board`, from the first look on.
    pub fn new(record: Record, board: Arc<Board>) -> Watch {
        Watch { record, board, places: Vec::new(), before: Vec::new(), end: Instant::ZERO }
    }

    /// Looks once.
    ///
    /// # Errors
    /// If a daemon does not answer.
    pub fn look(&mut self) -> Result<(), ClientError> {
        self.enter(client::outputs(&self.record)?);
        Ok(())
    }

    /// Enters what has been done since the look before; a first look only begins.
    fn enter(&mut self, now: Vec<Outputs>) {
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
        let outputs = self.board.outputs().all.len();
        let mut seen = Seen { slot, sights: vec![None; outputs], drops: 0 };
        for ((before, now), places) in before.iter().zip(&self.before).zip(&self.places) {
            let length_ps = now.at_ps.saturating_sub(before.at_ps);
            for ((before, now), place) in before.ports.iter().zip(&now.ports).zip(places) {
                let Some(place) = *place else { continue };
                let (hold_ps, sent) = (held(before, now), now.tx_bytes - before.tx_bytes);
                let sight = self.board.sight(place, length_ps, hold_ps, now.queue, sent);
                seen.sights[place] = Some(sight);
                seen.drops += now.drops - before.drops;
            }
        }
        self.board.enter_bin(&seen, host(&self.before));
    }

    fn places(&self) -> Vec<Vec<Option<usize>>> {
        let names = self.board.outputs().all.iter().enumerate();
        let known: BTreeMap<&str, usize> =
            names.map(|(place, output)| (output.name.as_str(), place)).collect();
        let of = |daemon: &Outputs| {
            daemon.ports.iter().map(|port| known.get(port.port.as_str()).copied()).collect()
        };
        self.before.iter().map(of).collect()
    }
}

/// Time held on the lane where that was longest.
fn held(before: &OutputCounters, now: &OutputCounters) -> u64 {
    let lanes = before.wait_ps.iter().zip(&now.wait_ps);
    lanes.map(|(before, now)| now - before).max().unwrap_or(0)
}

fn host(daemons: &[Outputs]) -> Host {
    let late = daemons.iter().map(|daemon| daemon.late_p99_thousandths).max();
    Host {
        late_p99_frames: late.map(|late| late as f64 / PER_MILLE),
        lost: daemons.iter().map(|daemon| daemon.lost).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{board, record};

    /// A daemon whose port h0:1 has sent so many octets, and was held so long on its second lane.
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
    fn between_two_looks_lies_a_bin_however_long() {
        let (_, board) = board();
        let mut watch = Watch::new(record("two"), Arc::clone(&board));
        let mut look = |counted: Outputs| watch.enter(vec![counted]);
        look(counted(1_000_000, 500, 0));
        assert_eq!(board.now().0, 0, "the first look only begins");
        // 8 Gbit/s for half of the time, held for a fifth.
        look(counted(11_000_000, 5_500, 2_000_000));
        look(counted(11_000_000, 5_500, 2_000_000));
        assert_eq!(board.now().0, 1, "where time stands still there is no bin");
        // A whole line, never held, with a frame lost.
        let mut later = counted(13_000_000, 7_500, 2_000_000);
        (later.lost, later.ports[0].drops) = (3, 1);
        look(later);
        let rows = board.rows_from(0);
        let octets: Vec<&[u8]> = rows.iter().map(|row| &row.octets[..4]).collect();
        assert_eq!(octets, [[120, 0x3f, 255, 0], [240, 0x0f, 255, 0]]);
        assert_eq!(rows[1].end_ps, 13_000_000);
        assert_eq!(board.now().1["lost"], 3);
        let told: Vec<_> = board.notes_after(0).into_iter().map(|note| note.text).collect();
        assert!(told.iter().any(|note| note["kind"] == "drop"), "{told:?}");
    }
}
