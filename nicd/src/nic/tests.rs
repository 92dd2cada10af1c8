//! Tests of a NIC: two NICs on a cable in memory.

mod bins;
pub(crate) mod cable;
mod congestion;
mod counted;
mod foreign;
mod notification_demux;
mod pause;
mod pending_connections;
mod reliability;
mod resequencing;
mod roce;
mod service;

use super::*;
