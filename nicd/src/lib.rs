//! The NIC (channel adapter) as a value: reliable transport, pacing and workloads.
//!
//! `main.rs` alone knows that there are processes, sockets and clocks. [`nic::Nic`] is the device;
//! [`config`] is what it is told.

pub mod config;
pub mod counters;
pub mod nic;
pub mod pacer;
pub mod timers;
pub mod transport;
pub mod workload;
