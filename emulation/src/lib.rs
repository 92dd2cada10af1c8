//! What stands in for hardware: clock, cables, driver, simulator, recorder and captures.
//!
//! The only crate that sees sockets and clocks. It drives `dyn Device` and knows neither switch
//! nor NIC.

pub mod capture;
pub mod recorder;
pub mod wiring;
pub mod witness;
