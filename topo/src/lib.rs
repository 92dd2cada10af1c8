//! The program `pausebed`: its commands, and what they print.

#[macro_use]
extern crate launch;

pub mod campaign;
pub mod command;
pub mod terminal;
