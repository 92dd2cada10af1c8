//! The switch as a value: input-buffered, lossless, marking as its scheme says.
//!
//! Life of a packet here: [`switch`] hands a frame to its port, which checks it and takes buffer;
//! [`routing`] chooses the outputs; [`memory`] keeps it in a queue; [`egress`] judges it for
//! congestion and, when line and credits allow, sends it on. `main.rs` alone knows that there are
//! processes, sockets and clocks.

pub mod config;
pub mod egress;
pub mod memory;
pub mod port_set;
pub mod routing;
pub mod switch;
