//! Emulated hardware: clock, cables, driver, simulator and recorder.
//!
//! Sockets and clocks are used in this crate and in those of its folder (`capture`, `daemon`) only. It drives
//! `dyn Device` and depends on neither switch nor NIC.

// Test devices name this crate as the other crates that use them do.
#[cfg(test)]
extern crate self as emulation;

pub mod awake;
pub mod cable;
mod calendar;
pub mod clock;
pub mod driver;
pub mod fidelity;
pub mod frame_tap;
pub mod observer;
pub mod recorder;
pub mod simulator;
pub mod timer;
pub mod wiring;
