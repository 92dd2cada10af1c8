//! The NIC (channel adapter) as a value: reliable transport, pacing and workloads.
//!
//! [`nic::Nic`] is the device and [`config`] its configuration. Only `main.rs` uses processes, sockets and
//! clocks.

pub mod config;
mod counters;
pub mod host;
pub mod nic;
mod pacer;
mod rx_buffer;
mod timers;
mod transport;
mod wire;
mod workload;
