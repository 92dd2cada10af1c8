//! The NIC (channel adapter) as a value: reliable transport, pacing and workloads.
//!
//! `main.rs` alone knows that there are processes, sockets and clocks.

pub mod config;
