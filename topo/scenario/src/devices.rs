//! Checks the configurations of devices before any device is started. Of switches on Ethernet: whether headroom covers
//! what may still come in, and whether buffers leave room beside it. A pool of headroom that not all ports can use at
//! once is a warning. Of NICs with slow hosts: the same for their receive buffers.

use crate::Scenario;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::render;
use crate::topology::end;
use proto::technology::Technology;
use switchd::config::{StormAction, SwitchConfig};
use switchd::memory::headroom::{MemoryError, ShortPool};
use switchd::switch::{ConfigError, buffer_needed, headroom_needed, short_pool};

/// Reports the first error of a switch on Ethernet, and the first of a NIC. Switches with credits need no such checks.
pub fn check(scenario: &Scenario, fabric: &Fields<'_>) {
    if scenario.fabric.technology == Technology::Ethernet {
        check_switches(scenario, fabric);
        check_watchdog(scenario, fabric);
        check_drains(scenario, fabric);
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
    if let (Some((name, error)), Some(fields)) = (&refused, fabric.table("switch")) {
        let (key, hint) = advice(error, &configs);
        fields.error(key, format!("{name}: {error}"), hint);
    }
    if refused.is_none() {
        check_full_pool(&configs, fabric);
    }
    let short = configs
        .iter()
        .filter_map(|config| Some((config.name.as_str(), short_pool(config)?)))
        .max_by_key(|(_, pool)| pool.needed);
    let pool = fabric.table("switch").and_then(|switch| switch.table("pool"));
    if let (Some((name, ShortPool { size, served, all, needed })), Some(fields)) = (short, pool) {
        let message = format!(
            "{name}: {size} hold what can still arrive after XOFF at {served} of {all} lossless priorities of ports; \
             if more pause at once, lossless frames are lost"
        );
        let hint = format!("headroom_pool = \"{} B\" holds at all", needed.get());
        fields.warn("headroom_pool", Complaint::new(message, hint));
    }
}

/// A pool that is full leaves no room for the frame that leads to XOFF: headroom that holds what comes after it is then one
/// frame short.
fn check_full_pool(configs: &[SwitchConfig], fabric: &Fields<'_>) {
    let needed = configs.iter().map(|config| (headroom_needed(config), config));
    let short = needed.filter(|(needed, config)| config.memory.headroom < *needed);
    let worst = short.max_by_key(|(needed, _)| *needed);
    if let (Some((needed, config)), Some(fields)) = (worst, fabric.table("switch")) {
        let SwitchConfig { name, memory, .. } = config;
        let message = format!(
            "{name}: headroom = {} holds what can still arrive after XOFF, but not the frame before it, \
             which a full pool has no room for; lossless frames may be lost",
            memory.headroom
        );
        let hint = format!("headroom = \"{} B\" holds everywhere", needed.get());
        fields.warn("headroom", Complaint::new(message, hint));
    }
}

/// A watchdog that forwards sends the frames of a storm into the pause.
fn check_watchdog(scenario: &Scenario, fabric: &Fields<'_>) {
    let watchdog = scenario.fabric.switch.watchdog.as_ref();
    if watchdog.is_none_or(|watchdog| watchdog.action != StormAction::Forward) {
        return;
    }
    if let Some(fields) = fabric.table("switch").and_then(|switch| switch.table("watchdog")) {
        let message = "frames of a storm are sent into the pause; lossless ones may find no room";
        let hint = "[run] lossless_drops = \"expected\" if the run may lose them";
        fields.warn("action", Complaint::new(message, hint));
    }
}

/// A NIC that pauses its neighbour for a slow host must hold what comes until the neighbour has stopped.
fn check_drains(scenario: &Scenario, fabric: &Fields<'_>) {
    let settings = &scenario.fabric;
    let numbers = render::memory(settings);
    let short = settings.afflicted.drains.iter().find_map(|(node, drain)| {
        let config = render::nic(scenario, *node);
        let delay = render::delay_at(settings, end(*node, 0));
        let needed = buffer_needed(&config.link, delay, drain.xoff, &numbers);
        (config.link.buffer < needed).then_some((config, drain.xoff, needed))
    });
    if let (Some((config, xoff, needed)), Some(fields)) = (short, fabric.table("nic")) {
        let buffer = config.link.buffer;
        let message = format!(
            "{}: drain.xoff = {xoff} and what can still arrive after XOFF take {needed} of a buffer of {buffer}",
            config.name
        );
        let hint = format!("buffer = \"{} B\" holds, or a lower drain.xoff", needed.get());
        fields.error("buffer", message, hint);
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
