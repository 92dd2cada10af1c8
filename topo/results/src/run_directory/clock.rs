//! The pieces of a live run's clock, which elastic pace stretches.

use super::result::RunResult;
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

impl RunResult {
    /// The dilation of the start and the greatest, if a live run stretched its clock.
    pub fn stretched(&self) -> Option<(u64, u64)> {
        let greatest = self.pieces.iter().map(|piece| piece.dilation).max()?;
        Some((self.dilation?, greatest))
    }

    /// The dilation in force at an instant, as a multiple of that of the start; 1 if the clock was never stretched.
    pub fn stretch_at(&self, t_ps: u64) -> f64 {
        let piece = self.pieces.iter().rev().find(|piece| piece.from_ps <= t_ps);
        match (piece, self.dilation) {
            (Some(piece), Some(dilation)) => piece.dilation as f64 / dilation.max(1) as f64,
            _ => 1.0,
        }
    }
}
