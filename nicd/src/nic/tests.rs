//! Two NICs on a toy cable: what arrives, what is lost, what is said about it.

mod bins;
pub(crate) mod cable;
mod congestion;
mod notification_demux;
mod pause;
mod pending_connections;
mod reliability;
mod resequencing;
mod roce;
mod service;

use super::*;
