//! Emulated hardware: clock, cables, driver, simulator and recorder.
//!
//! Sockets and clocks are used in this crate, in `emulation/daemon` and in `capture` only. It drives
//! `dyn Device` and depends on neither switch nor NIC.

pub mod alarm;
pub mod awake;
pub mod cable;
mod calendar;
pub mod clock;
pub mod driver;
pub mod exact;
pub mod fidelity;
pub mod frame_tap;
mod inputs;
pub mod observer;
mod physics;
pub mod recorder;
pub mod simulator;
mod station;
pub mod timer;
pub mod wiring;
