//! From a scenario to the configuration of each device, cable and recorder before the start.
//!
//! Nothing can fail here: [`Scenario::parse`] has refused whatever could.

use crate::Scenario;
use crate::attached::AttachedPort;
use crate::fabric::FabricSettings;
use crate::frames;
use crate::host::ForeignHost;
use crate::inventory::{Fabric, ReplayFacts};
use crate::measure::{Expectation, Measure};
use crate::phases::Phase;
use crate::routes::proof::Waits;
use crate::topology::{Node, end};
use crate::traffic::Receivers;
use crate::traffic::replayed::Replay;
use emulation::recorder::RecordingPlan;
use emulation::wiring::{Attached, End, LinkWiring, NodeKind, NodeWiring, Wiring};
use nicd::config::{GroupConfig, HostConfig, ManagementConfig, NicConfig, RemoteConfig};
use proto::ids::{Lid, PortNumber};
use proto::link::{FlowControlConfig, LinkConfig, PauseConfig, PauseMode};
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration};
use proto::wire::ethernet::{MacAddress, plan};
use std::collections::BTreeMap;
use switchd::config::{MemoryConfig, PortConfig, RoutingConfig, SwitchConfig};

mod recording;
mod workload;

/// The frame size assumed for Ethernet without a configured one: the frame by which lateness at an attached port
/// is counted. Source: IEEE 802.3, 3.2.7 (maxBasicDataSize).
const ETHERNET_MTU: Bytes = Bytes::new(1_500);

/// Everything a launcher needs.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Nodes (adapters first), cables, names, rates.
    pub fabric: Fabric,
    /// The graph of outputs that can wait for each other; empty if it has no circle.
    pub waits: Waits,
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

impl Lab {
    /// Whether a subnet manager has the fabric.
    pub fn is_managed(&self) -> bool {
        let switches = self.switches.iter().map(|switch| &switch.management);
        self.nics.iter().map(|nic| &nic.management).chain(switches).any(Option::is_some)
    }
}

/// Renders a scenario.
pub fn render(scenario: &Scenario) -> Lab {
    let settings = &scenario.fabric;
    let (adapters, nodes) = (settings.topology.adapters(), settings.topology.nodes.len());
    Lab {
        fabric: fabric(scenario),
        waits: settings.waits.clone(),
        switches: (adapters..nodes).map(|node| switch(scenario, node)).collect(),
        nics: (0..adapters).map(|node| nic(scenario, node)).collect(),
        plan: recording::plan(scenario),
        measures: scenario.measures.clone(),
        expectations: scenario.expectations.clone(),
        phases: scenario.phases.clone(),
    }
}

fn fabric(scenario: &Scenario) -> Fabric {
    let settings = &scenario.fabric;
    let nodes = &settings.topology.nodes;
    let adapters = settings.topology.adapters();
    let lids: Vec<Lid> = nodes[..adapters].iter().map(|node| node.lid).collect();
    let items = |node: usize| workload::of(scenario, node, &lids).iter().map(|i| i.item).collect();
    let classes = &scenario.traffic.classes;
    Fabric {
        wiring: wiring(scenario),
        rates: (0..settings.topology.cables.len()).map(|cable| settings.rate_of(cable)).collect(),
        attached_rates: settings.attached.iter().map(AttachedPort::line_rate).collect(),
        nominal_rates: settings.attached.iter().map(AttachedPort::nominal_rate).collect(),
        technology: settings.technology,
        tau: settings.scale.tau,
        full_frame: settings.scale.frame,
        addresses: nodes
            .iter()
            .map(|node| if node.kind == NodeKind::Nic { u64::from(node.lid.get()) } else { 0 })
            .collect(),
        traffic: scenario.traffic.names(),
        replays: replays(scenario),
        items: (0..nodes.len()).map(items).collect(),
        lanes: classes.iter().map(|class| settings.lane_of(class.service_level)).collect(),
        lossless: lossless(settings),
        protected: match &settings.link.control {
            FlowControlConfig::Pause(pause) if pause.mode == PauseMode::None => 0,
            _ => lossless(settings),
        },
        hosts: settings.hosts.clone(),
    }
}

/// The properties of traces that measures need.
fn replays(scenario: &Scenario) -> BTreeMap<u16, ReplayFacts> {
    let items = (0u16..).zip(&scenario.traffic.items);
    let replays = items.filter_map(|(number, item)| match &item.to {
        Receivers::Script(Replay { ideal, messages, .. }) => {
            let (ideal, messages) = (*ideal, *messages);
            Some((number, ReplayFacts { start: item.start, ideal, messages, class: item.class }))
        }
        _ => None,
    });
    replays.collect()
}

fn wiring(scenario: &Scenario) -> Wiring {
    let settings = &scenario.fabric;
    let full = settings.full_frame();
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
        attached: settings.attached.iter().map(attached).collect(),
    }
}

fn attached(port: &AttachedPort) -> Attached {
    let full = frames::full_frame(Technology::Ethernet, ETHERNET_MTU);
    let (at, interface) = (port.at, port.interface.clone());
    let frame_time = port.line_rate().map_or(Duration::ZERO, |rate| full.time_at(rate));
    let (socket, mtu, send) = (port.socket.clone(), port.mtu, port.send);
    Attached { at, interface, socket, is_host: port.is_host, frame_time, mtu, send }
}

/// Lanes that must lose nothing, even where the scenario takes away what keeps them so.
fn lossless(settings: &FabricSettings) -> u16 {
    match &settings.link.control {
        FlowControlConfig::Credit(_) => u16::MAX,
        FlowControlConfig::Pause(pause) if pause.mode == PauseMode::Global => u8::MAX.into(),
        FlowControlConfig::Pause(pause) => pause.lossless.into(),
    }
}

/// The rate of the cable at `end`; of the default link where there is none.
fn rate_at(settings: &FabricSettings, end: End) -> BitRate {
    if let Some(attached) = settings.attached_at(end) {
        return attached.rate;
    }
    settings.topology.cable_at(end).map_or(settings.link.rate, |cable| settings.rate_of(cable))
}

/// What the cable at `end` takes one way; what one of the default link would where there is none.
pub(crate) fn delay_at(settings: &FabricSettings, end: End) -> Duration {
    if settings.attached_at(end).is_some() {
        return Duration::ZERO;
    }
    let cable = settings.topology.cable_at(end).map(|cable| &settings.topology.cables[cable]);
    cable.and_then(|cable| cable.delay).unwrap_or(settings.link.delay)
}

fn link(scenario: &Scenario, end: End, buffer: Bytes) -> LinkConfig {
    let settings = &scenario.fabric;
    let attached = settings.attached_at(end);
    LinkConfig {
        rate: rate_at(settings, end),
        mtu: attached.map_or(settings.mtu, |attached| attached.mtu),
        buffer,
        control: match &settings.link.control {
            FlowControlConfig::Credit(credits) => FlowControlConfig::Credit(credits.clone()),
            FlowControlConfig::Pause(link) => FlowControlConfig::Pause(pause(scenario, end, link)),
        },
    }
}

/// The pauses of the port at `end`: those of the default link, or what its attachment says.
fn pause(scenario: &Scenario, end: End, link: &PauseConfig) -> PauseConfig {
    let settings = &scenario.fabric;
    let cable = settings.topology.cable_at(end);
    let here = scenario.outages.iter().filter(|(other, _)| Some(*other) == cable);
    let pause = PauseConfig {
        address: address(&settings.topology.nodes[end.node], end.port),
        full_frame: settings.frame,
        outages: here.map(|(_, outage)| *outage).collect(),
        ..link.clone()
    };
    match settings.attached_at(end) {
        None => pause,
        Some(attached) => PauseConfig {
            mode: attached.pause,
            priorities: attached.priorities,
            quanta_rate: Some(attached.pause_rate),
            ..pause
        },
    }
}

/// The address of a port: an adapter's is its own, those of a switch's ports are in no plan.
fn address(node: &Node, port: PortNumber) -> MacAddress {
    match node.kind {
        NodeKind::Nic => plan::mac(node.lid),
        NodeKind::Switch => plan::port_mac(node.lid, port),
    }
}

/// The memory model's numbers; a neighbour that takes its time to respond needs room like one that is
/// late.
pub(crate) fn memory(settings: &FabricSettings) -> MemoryConfig {
    let response = match &settings.link.control {
        FlowControlConfig::Credit(_) => Duration::ZERO,
        FlowControlConfig::Pause(pause) => pause.response,
    };
    let memory = settings.switch.memory.clone();
    MemoryConfig { jitter: memory.jitter + response, ..memory }
}

/// The configuration of switch `node`.
pub fn switch(scenario: &Scenario, node: usize) -> SwitchConfig {
    let settings = &scenario.fabric;
    let device = &settings.topology.nodes[node];
    let neighbours = &settings.topology.neighbours()[node];
    let adapters = settings.topology.adapters();
    let port = |(index, far): (usize, &Option<End>)| {
        let at = end(node, index);
        let services = settings.services.iter().filter(|(slow, _)| *slow == at);
        PortConfig {
            faces_adapter: far.is_some_and(|far| far.node < adapters),
            link: link(scenario, at, settings.switch.buffer),
            delay: delay_at(settings, at),
            service: services.map(|(_, service)| *service).collect(),
            domain: settings.domain.at(at),
        }
    };
    let management = management(settings, node);
    SwitchConfig {
        name: device.name.clone(),
        seed: scenario.run.seed,
        lid: device.lid,
        memory: memory(settings),
        sl2vl: settings.sl2vl.clone(),
        scheme: scenario.scheme.clone(),
        ports: neighbours.iter().enumerate().map(port).collect(),
        // The subnet manager sets those of a managed switch.
        routes: match management {
            Some(_) => Vec::new(),
            None => settings.forwarding.runs(node),
        },
        routing: routing(settings, node),
        watchdog: settings.switch.watchdog,
        management,
        multicast: settings
            .multicast
            .iter()
            .filter(|(at, _)| *at == node)
            .map(|(_, route)| route.clone())
            .collect(),
    }
}

/// The node GUID of `node`, if a subnet manager has the fabric. The next 255 numbers are those of its ports.
fn management(settings: &FabricSettings, node: usize) -> Option<ManagementConfig> {
    // A locally administered EUI-64.
    const FIRST: u64 = 0x0250_4200_0000_0000;
    let lid = u64::from(settings.topology.nodes[node].lid.get());
    settings.managed.then_some(ManagementConfig { guid: FIRST | lid << 8 })
}

/// How switch `node` chooses among its ports.
fn routing(settings: &FabricSettings, node: usize) -> RoutingConfig {
    let pairs = settings.pairs.iter().filter(|(at, _)| *at == node);
    RoutingConfig {
        kind: Some(settings.routing.0.name.to_owned()),
        spread: settings.topology.nodes[node].spread,
        pairs: pairs.map(|(_, pair)| *pair).collect(),
        ..settings.switch.routing.clone()
    }
}

/// The host beside the adapter of NIC `node`: there is one where foreign hosts are attached.
fn host(scenario: &Scenario, node: usize) -> Option<HostConfig> {
    let serving = scenario.serving.iter().filter(|(at, _)| *at == node);
    let serve = serving.map(|(_, service)| *service).collect();
    let items = scenario.traffic.items.iter().filter(|item| item.from.contains(&node));
    let remotes = items.flat_map(|item| {
        let hosts = match &item.to {
            Receivers::Foreign(hosts) => &hosts[..],
            _ => &[],
        };
        hosts.iter().map(|host| {
            let ForeignHost { number: lid, path_mtu: mtu, .. } = scenario.fabric.foreign[*host];
            RemoteConfig { lid, class: item.class, port: item.port, mtu }
        })
    });
    let remotes = remotes.collect();
    (!scenario.fabric.attached.is_empty()).then_some(HostConfig { serve, remotes })
}

/// The configuration of NIC `node`.
pub fn nic(scenario: &Scenario, node: usize) -> NicConfig {
    let settings = &scenario.fabric;
    let params = settings.nic.params;
    let adapters: Vec<Lid> =
        settings.topology.nodes[..settings.topology.adapters()].iter().map(|n| n.lid).collect();
    NicConfig {
        name: settings.topology.nodes[node].name.clone(),
        seed: scenario.run.seed,
        lid: adapters[node],
        qp_order: params.qp_order,
        ack_every: params.ack_every,
        ack_delay: params.ack_delay,
        ack_timeout: params.ack_timeout,
        retry_count: params.retry_count,
        rnr_retry: params.rnr_retry,
        rnr_timer: params.rnr_timer,
        receive_depth: params.receive_depth,
        receive_refill: params.receive_refill,
        send_queue_max: None,
        wire: settings.wire_of(node),
        cnp_body: settings.nic.cnp_body,
        sl2vl: settings.sl2vl.clone(),
        scheme: scenario.scheme.clone(),
        link: link(scenario, end(node, 0), params.buffer),
        traffic: workload::of(scenario, node, &adapters),
        classes: scenario.traffic.classes.clone(),
        adapters,
        host: host(scenario, node),
        management: management(settings, node),
        groups: groups(scenario, node),
    }
}

/// The multicast groups that adapter `node` belongs to, or sends to.
fn groups(scenario: &Scenario, node: usize) -> Vec<GroupConfig> {
    let all = scenario.fabric.groups.iter().enumerate();
    let sends = |group: usize| {
        let mut items = scenario.traffic.items.iter();
        items.any(|item| item.to == Receivers::Group(group) && item.from.contains(&node))
    };
    all.filter_map(|(index, group)| group.at(node, sends(index))).collect()
}

#[cfg(test)]
mod tests;
