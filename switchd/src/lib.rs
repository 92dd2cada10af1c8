//! The switch as a value: lossless, marking as its scheme says, on InfiniBand and on Ethernet.
//!
//! Life of a packet here: [`switch`] hands a frame to its port, which checks it; [`routing`] chooses
//! the outputs; [`memory`] takes it in, or not, and keeps it in a queue; [`egress`] judges it for
//! congestion and, when line and flow control allow, sends it on. [`watchdog`] looks after queues that
//! are paused for ever. `main.rs` alone knows that there are processes, sockets and clocks.

pub mod config;
pub mod egress;
pub mod memory;
pub mod port_set;
pub mod routing;
pub mod service_levels;
pub mod switch;
pub mod watchdog;

/// A switch from its configuration as a table.
///
/// # Errors
/// What is wrong with the table, in words.
pub fn make(table: toml::Table) -> Result<Box<dyn proto::device::Device>, String> {
    let config: config::SwitchConfig = table.try_into().map_err(|error| error.to_string())?;
    let switch = switch::Switch::new(config).map_err(|error| error.to_string())?;
    Ok(Box::new(switch))
}
