//! The NIC (channel adapter) as a value: reliable transport, pacing and workloads.
//!
//! [`nic::Nic`] is the device and [`config`] its configuration. Only `main.rs` uses processes, sockets and
//! clocks.

pub mod config;
mod counters;
pub mod nic;
mod pacer;
mod rx_buffer;
mod timers;
mod transport;
mod wire;
mod workload;

/// Makes a NIC from a configuration table, which deserializes into [`config::NicConfig`].
///
/// # Errors
/// The first fault of the table or of the configuration, as a message for users.
pub fn make(table: toml::Table) -> Result<Box<dyn proto::device::Device>, String> {
    let config: config::NicConfig = table.try_into().map_err(|error| error.to_string())?;
    let nic = nic::Nic::new(config).map_err(|error| error.to_string())?;
    Ok(Box::new(nic))
}
