//! Two NICs on a toy cable: what arrives, what is lost, what is said about it.

pub(crate) mod cable;
mod congestion;
mod reliability;
mod service;

use super::*;
