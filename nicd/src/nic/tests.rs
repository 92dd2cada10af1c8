//! Two NICs on a toy cable: what arrives, what is lost, what is said about it.

mod bins;
pub(crate) mod cable;
mod congestion;
mod in_order;
mod notices;
mod pause;
mod prospects;
mod reliability;
mod roce;
mod service;

use super::*;
