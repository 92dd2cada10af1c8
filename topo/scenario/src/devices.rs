//! Checks the configurations of devices before any device is started. Of switches on Ethernet: whether headroom covers
//! what may still come in, and whether buffers leave room beside it.

use crate::Scenario;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::render;
use proto::technology::Technology;
use switchd::config::SwitchConfig;
use switchd::memory::headroom::MemoryError;
use switchd::switch::{ConfigError, headroom_needed};

/// Reports the first error of a switch on Ethernet, and the first of a NIC. Switches with credits need no such checks.
pub fn check(scenario: &Scenario, fabric: &Fields<'_>) {
    if scenario.fabric.technology == Technology::Ethernet {
        check_switches(scenario, fabric);
    }
    let adapters = scenario.fabric.topology.adapters();
    let mut nics = (0..adapters).map(|node| render::nic(scenario, node));
    let refused = nics.find_map(|config| Some((config.check().err()?, config.name)));
    if let (Some((error, name)), Some(fields)) = (refused, fabric.table("nic")) {
        let complaint = Complaint::new(format!("{name}: {error}"), "see [fabric.nic]");
        fields.problems.borrow_mut().report(fields.place, &fields.path, complaint);
    }
}

fn check_switches(scenario: &Scenario, fabric: &Fields<'_>) {
    let nodes = &scenario.fabric.topology.nodes;
    let adapters = scenario.fabric.topology.adapters();
    let configs: Vec<SwitchConfig> =
        (adapters..nodes.len()).map(|node| render::switch(scenario, node)).collect();
    let refused = configs
        .iter()
        .find_map(|config| config.check().err().map(|error| (config.name.as_str(), error)));
    if let (Some((name, error)), Some(fields)) = (refused, fabric.table("switch")) {
        let (key, hint) = advice(&error, &configs);
        fields.error(key, format!("{name}: {error}"), hint);
    }
}

/// The key of `[fabric.switch]` to change, and how.
fn advice(error: &ConfigError, configs: &[SwitchConfig]) -> (&'static str, String) {
    match error {
        ConfigError::Room(MemoryError::Headroom { .. }) => {
            let needed = configs.iter().map(headroom_needed).max().unwrap_or_default();
            ("headroom", format!("headroom = \"{} B\" holds everywhere", needed.get()))
        }
        ConfigError::Room(MemoryError::Buffer { .. }) => {
            ("buffer", "a larger buffer; headroom is taken from it".to_owned())
        }
        ConfigError::Room(_) => ("pool", "see fabric.switch.pool".to_owned()),
        ConfigError::Watchdog => ("watchdog", "see link.pause".to_owned()),
        _ => ("memory", "see [fabric.switch]".to_owned()),
    }
}
