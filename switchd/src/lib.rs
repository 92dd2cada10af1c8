//! A lossless switch as a value, on InfiniBand and on Ethernet, with congestion points.
//!
//! Life of a packet: its port checks it ([`switch`]), [`routing`] chooses the output, [`memory`] admits it
//! and queues it, and [`egress`] marks it and sends it when line and flow control permit. [`watchdog`]
//! detects queues that stay paused. Only `main.rs` uses processes, sockets and clocks.

pub mod config;
mod egress;
pub mod memory;
mod port_set;
pub mod routing;
mod service_levels;
pub mod switch;
mod watchdog;

/// Builds a switch from its configuration as a TOML table, a [`config::SwitchConfig`].
///
/// # Errors
/// If the table has another shape, or if [`switch::Switch::new`] refuses it. The text names the cause.
pub fn make(table: toml::Table) -> Result<Box<dyn proto::device::Device>, String> {
    let config: config::SwitchConfig = table.try_into().map_err(|error| error.to_string())?;
    let switch = switch::Switch::new(config).map_err(|error| error.to_string())?;
    Ok(Box::new(switch))
}
