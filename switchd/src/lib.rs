//! A lossless switch as a value, on InfiniBand and on Ethernet, with congestion points.
//!
//! Life of a packet: its port checks it ([`switch`]), [`routing`] chooses the output, [`memory`] admits it
//! and queues it, and [`egress`] marks it and sends it when line and flow control permit. [`watchdog`]
//! detects queues that stay paused. Only `main.rs` uses processes, sockets and clocks.

pub mod config;
mod egress;
pub mod memory;
mod partitions;
mod port_set;
pub mod routing;
mod service_levels;
pub mod switch;
mod watchdog;
