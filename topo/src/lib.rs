//! The program `pausebed`: its commands, and what they print.

#[macro_use]
extern crate launch;

mod campaign;
pub mod command;
mod exit;
mod options;
mod shards;
mod terminal;
