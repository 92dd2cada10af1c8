//! The pieces of a live run's clock, which elastic pace stretches.

use emulation::clock::Piece;
use serde::{Deserialize, Serialize};

/// A part of a live run with one dilation, up to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPiece {
    /// Where it begins, fabric picoseconds.
    pub from_ps: u64,
    /// Wall time over fabric time.
    pub dilation: u64,
}

impl ClockPiece {
    /// Of a piece of the clock.
    pub fn of(piece: &Piece) -> ClockPiece {
        ClockPiece { from_ps: piece.from.as_ps(), dilation: piece.dilation.get() }
    }
}

/// The pieces of a run, ascending; none if its clock never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockPieces(pub Vec<ClockPiece>);

impl ClockPieces {
    /// Of the pieces of a clock.
    pub fn of(pieces: &[Piece]) -> ClockPieces {
        let is_one = pieces.len() <= 1;
        ClockPieces(if is_one { Vec::new() } else { pieces.iter().map(ClockPiece::of).collect() })
    }

    /// Whether the clock never changed.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The dilation of the start and the greatest, if the clock was stretched.
    pub fn stretched(&self) -> Option<(u64, u64)> {
        let greatest = self.0.iter().map(|piece| piece.dilation).max()?;
        Some((self.0.first()?.dilation, greatest))
    }

    /// The dilation in force at an instant, as a multiple of that of the start; 1 if the clock was never stretched.
    pub fn stretch_at(&self, t_ps: u64) -> f64 {
        let in_force = self.0.iter().rev().find(|piece| piece.from_ps <= t_ps);
        let multiple = |piece: &ClockPiece, start: &ClockPiece| {
            piece.dilation as f64 / start.dilation.max(1) as f64
        };
        in_force.zip(self.0.first()).map_or(1.0, |(piece, start)| multiple(piece, start))
    }
}
