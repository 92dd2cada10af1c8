//! What stands in for hardware: clock, cables, driver, simulator, recorder and captures.
//!
//! The only crate that sees sockets and clocks. It drives `dyn Device` and knows neither switch
//! nor NIC.

pub mod awake;
pub mod cable;
pub mod calendar;
pub mod capture;
pub mod clock;
pub mod daemon;
pub mod driver;
pub mod fidelity;
pub mod privileges;
pub mod recorder;
pub mod simulator;
pub mod timer;
pub mod wiring;
pub mod witness;
