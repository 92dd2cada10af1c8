//! The program `pausebed`: its commands, and what they print.

#[macro_use]
extern crate launch;

mod campaign;
pub mod command;
mod completion;
mod exit;
mod library;
mod options;
mod shards;
mod starter;
mod terminal;
