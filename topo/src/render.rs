//! From a scenario to what each device, cable and recorder is told before the start.
//!
//! Nothing can fail here: [`Scenario::parse`] has refused whatever could.

use crate::fabric::Fabric;
use crate::frames;
use crate::measure::{Expectation, Measure};
use crate::scenario::Scenario;
use crate::scenario::fabric::FabricSettings;
use crate::scenario::phases::Phase;
use crate::topology::end;
use emulation::recorder::RecordingPlan;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use nicd::config::{Encapsulation, NicConfig};
use proto::ids::Lid;
use proto::link::{CreditConfig, LinkConfig, LinkControl};
use proto::units::{BitRate, Bytes, Duration};
use switchd::config::{PortConfig, RoutingConfig, SwitchConfig};

mod recording;
mod workload;

/// Everything a launcher needs.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Nodes (adapters first), cables, names, rates.
    pub fabric: Fabric,
    /// The switches, in node order: node `nics.len() + i` is `switches[i]`.
    pub switches: Vec<SwitchConfig>,
    /// The NICs, in node order: node `i` is `nics[i]`.
    pub nics: Vec<NicConfig>,
    /// What is recorded.
    pub plan: RecordingPlan,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
    /// Named parts of the run.
    pub phases: Vec<Phase>,
}

/// Renders a scenario.
pub fn render(scenario: &Scenario) -> Lab {
    let settings = &scenario.fabric;
    let adapters = settings.topology.adapters();
    Lab {
        fabric: fabric(scenario),
        switches: (adapters..settings.topology.nodes.len())
            .map(|node| switch(scenario, node))
            .collect(),
        nics: (0..adapters).map(|node| nic(scenario, node)).collect(),
        plan: recording::plan(scenario),
        measures: scenario.measures.clone(),
        expectations: scenario.expectations.clone(),
        phases: scenario.phases.clone(),
    }
}

fn fabric(scenario: &Scenario) -> Fabric {
    let settings = &scenario.fabric;
    let adapters = settings.topology.adapters();
    let nodes = &settings.topology.nodes;
    let items = (0..adapters).map(|node| {
        let lids: Vec<Lid> = nodes[..adapters].iter().map(|node| node.lid).collect();
        workload::of(scenario, node, &lids).iter().map(|item| item.item).collect()
    });
    let classes = &scenario.traffic.classes;
    Fabric {
        wiring: wiring(scenario),
        rates: (0..settings.topology.cables.len()).map(|cable| settings.rate_of(cable)).collect(),
        technology: "infiniband".to_owned(),
        tau: settings.scale.tau,
        full_frame: settings.scale.frame,
        addresses: nodes
            .iter()
            .map(|node| if node.kind == NodeKind::Nic { u64::from(node.lid.get()) } else { 0 })
            .collect(),
        traffic: scenario.traffic.names(),
        items: items.chain((adapters..nodes.len()).map(|_| Vec::new())).collect(),
        lanes: classes.iter().map(|class| settings.sl2vl[class.service_level.index()]).collect(),
    }
}

fn wiring(scenario: &Scenario) -> Wiring {
    let settings = &scenario.fabric;
    let full = frames::full_frame(settings.mtu);
    let nodes = settings.topology.nodes.iter().map(|node| NodeWiring {
        name: node.name.clone(),
        kind: node.kind,
        ports: node.ports,
        level: node.level,
    });
    let links = settings.topology.cables.iter().enumerate().map(|(number, cable)| LinkWiring {
        a: cable.a,
        b: cable.b,
        delay: cable.delay.unwrap_or(settings.link.delay),
        frame_time: full.time_at(settings.rate_of(number)),
    });
    Wiring {
        nodes: nodes.collect(),
        links: links.collect(),
        impairments: scenario.impairments.clone(),
    }
}

/// The rate of the cable at `end`; of the default link where there is none.
fn rate_at(settings: &FabricSettings, end: End) -> BitRate {
    settings.topology.cable_at(end).map_or(settings.link.rate, |cable| settings.rate_of(cable))
}

/// What the cable at `end` takes one way; what one of the default link would where there is none.
fn delay_at(settings: &FabricSettings, end: End) -> Duration {
    let cable = settings.topology.cable_at(end).map(|cable| &settings.topology.cables[cable]);
    cable.and_then(|cable| cable.delay).unwrap_or(settings.link.delay)
}

fn link(settings: &FabricSettings, end: End, buffer: Bytes) -> LinkConfig {
    LinkConfig {
        rate: rate_at(settings, end),
        mtu: settings.mtu,
        buffer,
        control: LinkControl::Credits(CreditConfig {
            lanes: settings.link.lanes,
            data_lanes: settings.link.vls,
            arbitration: settings.link.arbitration.clone(),
        }),
    }
}

fn switch(scenario: &Scenario, node: usize) -> SwitchConfig {
    let settings = &scenario.fabric;
    let device = &settings.topology.nodes[node];
    let neighbours = &settings.topology.neighbours()[node];
    let is_adapter = |far: &Option<End>| {
        far.is_some_and(|far| settings.topology.nodes[far.node].kind == NodeKind::Nic)
    };
    let ports = neighbours.iter().enumerate().map(|(index, far)| PortConfig {
        faces_adapter: is_adapter(far),
        link: link(settings, end(node, index), settings.switch.buffer),
        delay: delay_at(settings, end(node, index)),
    });
    SwitchConfig {
        name: device.name.clone(),
        seed: scenario.run.seed,
        lid: device.lid,
        memory: settings.switch.memory.clone(),
        sl2vl: settings.sl2vl.clone(),
        scheme: scenario.scheme.clone(),
        ports: ports.collect(),
        routes: settings.forwarding.runs(node),
        routing: RoutingConfig::default(),
        watchdog: None,
        multicast: settings
            .multicast
            .iter()
            .filter(|(at, _)| *at == node)
            .map(|(_, route)| route.clone())
            .collect(),
    }
}

fn nic(scenario: &Scenario, node: usize) -> NicConfig {
    let settings = &scenario.fabric;
    let common = &settings.nic;
    let adapters: Vec<Lid> =
        settings.topology.nodes[..settings.topology.adapters()].iter().map(|n| n.lid).collect();
    NicConfig {
        name: settings.topology.nodes[node].name.clone(),
        seed: scenario.run.seed,
        lid: adapters[node],
        qp_order: common.qp_order,
        ack_every: common.ack_every,
        ack_delay: common.ack_delay,
        ack_timeout: common.ack_timeout,
        retry_count: common.retry_count,
        rnr_retry: common.rnr_retry,
        rnr_timer: common.rnr_timer,
        receive_depth: common.receive_depth,
        receive_refill: common.receive_refill,
        wire: Encapsulation::Infiniband,
        cnp_body: common.cnp_body,
        sl2vl: settings.sl2vl.clone(),
        scheme: scenario.scheme.clone(),
        link: link(settings, end(node, 0), common.buffer),
        traffic: workload::of(scenario, node, &adapters),
        classes: scenario.traffic.classes.clone(),
        adapters,
    }
}

#[cfg(test)]
mod tests;
