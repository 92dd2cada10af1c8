//! The NIC (channel adapter) as a value: reliable transport, pacing and workloads.
//!
//! `main.rs` alone knows that there are processes, sockets and clocks. [`nic::Nic`] is the device;
//! [`config`] is what it is told.

pub mod config;
mod counters;
pub mod nic;
mod pacer;
mod rx_buffer;
mod timers;
mod transport;
mod wire;
mod workload;

/// A NIC from its configuration as a table.
///
/// # Errors
/// What is wrong with the table, in words.
pub fn make(table: toml::Table) -> Result<Box<dyn proto::device::Device>, String> {
    let config: config::NicConfig = table.try_into().map_err(|error| error.to_string())?;
    let nic = nic::Nic::new(config).map_err(|error| error.to_string())?;
    Ok(Box::new(nic))
}
