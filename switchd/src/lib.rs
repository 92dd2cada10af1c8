//! The switch as a value: input-buffered, lossless, marking as its scheme says.
//!
//! `main.rs` alone knows that there are processes, sockets and clocks.

pub mod config;
