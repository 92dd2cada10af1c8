//! `[fabric]`: the graph, its routes, and what links, switches and NICs have in common.

use crate::attached::AttachedPort;
use crate::frames;
use crate::host::{ForeignHost, Host};
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::Complaint;
use crate::reachability;
use crate::routes::proof::Waits;
use crate::routes::{Forwarding, Routing};
use crate::shapes::{self, listed};
use crate::topology::{Cable, Node, Topology, end};
use domain::Domain;
use emulation::wiring::End;
use group::Group;
use link::Link;
use nic::{Afflicted, Nic};
use nicd::config::Encapsulation;
use proto::ids::{Lid, PortNumber, Priority, ServiceLevel};
use proto::link::FlowControlConfig;
use proto::params::Scale;
use proto::technology::Technology;
use proto::units::{BitRate, Bytes};
use switch::Switch;
use switchd::config::{MulticastRoute, PairRoute, ServiceConfig};
use switchd::memory::models;

pub mod domain;
mod explicit;
pub mod group;
mod keys;
pub mod link;
pub mod nic;
pub mod switch;

pub use keys::KEYS;

use keys::OneLink;

/// The MTU if none is given, in octets of payload.
pub const DEFAULT_MTU: u64 = 2048;
/// The largest MTU. Source: IBTA Vol 1, 7.7.8.
pub const MTU_MAX: u64 = 4096;

/// The link rate if none is given: four lanes of single data rate; on Ethernet the rate for which
/// DCQCN's numbers were published.
pub const fn default_rate(technology: Technology) -> BitRate {
    match technology {
        Technology::Infiniband => BitRate::gbps(8),
        Technology::Ethernet => BitRate::gbps(40),
    }
}

/// What a scenario runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricSettings {
    /// What frames are.
    pub technology: Technology,
    /// The graph.
    pub topology: Topology,
    /// Unicast routes of every switch.
    pub forwarding: Forwarding,
    /// How switches choose among them.
    pub routing: Routing,
    /// Ports given to pairs of adapters, with the node of the switch.
    pub pairs: Vec<(usize, PairRoute)>,
    /// Which ends can wait for which by these routes; empty without a cycle.
    pub waits: Waits,
    /// Multicast routes, with the node of the switch.
    pub multicast: Vec<(usize, MulticastRoute)>,
    /// Multicast groups that NICs join.
    pub groups: Vec<Group>,
    /// Largest payload of one packet.
    pub mtu: Bytes,
    /// A full data frame where it is not the one of the MTU.
    pub frame: Option<Bytes>,
    /// What one `mtu` is, in time and in room.
    pub scale: Scale,
    /// The default link.
    pub link: Link,
    /// Every switch.
    pub switch: Switch,
    /// Every NIC.
    pub nic: Nic,
    /// Outputs of switches that serve slower than their line.
    pub services: Vec<(End, ServiceConfig)>,
    /// The domain of congestion notification.
    pub domain: Domain,
    /// Slow hosts and storms.
    pub afflicted: Afflicted,
    /// Ports that are cabled to interfaces of this host, see `[lab]`.
    pub attached: Vec<AttachedPort>,
    /// Hosts there that traffic can be sent to, see `[[foreign]]`.
    pub foreign: Vec<ForeignHost>,
    /// Hosts at some of them, see `[[host]]`.
    pub hosts: Vec<Host>,
    /// A subnet manager assigns LIDs, routes and lanes.
    pub managed: bool,
    /// Service level to virtual lane, sixteen entries; of no meaning on Ethernet.
    pub sl2vl: Vec<u8>,
}

impl FabricSettings {
    /// What is attached at `end`, if anything is.
    pub fn attached_at(&self, end: End) -> Option<&AttachedPort> {
        self.attached.iter().find(|attached| attached.at == end)
    }

    /// The graph with a node for each attached interface, for pictures.
    pub fn drawn_topology(&self) -> Topology {
        let mut drawn = self.topology.clone();
        for attached in &self.attached {
            let host = end(drawn.nodes.len(), 0);
            drawn.add(attached.interface.clone(), 0, 1, 1);
            let rate = attached.line_rate();
            drawn.cables.push(Cable { a: host, b: attached.at, rate, delay: None });
        }
        drawn
    }

    /// The rate of cable `cable`.
    pub fn rate_of(&self, cable: usize) -> BitRate {
        self.topology.cables[cable].rate.unwrap_or(self.link.rate)
    }

    /// A full data frame of the fabric on the wire.
    pub fn full_frame(&self) -> Bytes {
        self.frame.unwrap_or_else(|| frames::full_frame(self.technology, self.mtu))
    }

    /// The wire format of NIC `node`, with its drain and its storm.
    pub fn wire_of(&self, node: usize) -> Encapsulation {
        let mut wire = self.nic.wire.clone();
        if let Encapsulation::Roce(roce) = &mut wire {
            let Afflicted { drains, storms } = &self.afflicted;
            roce.drain = drains.iter().rev().find(|(at, _)| *at == node).map(|(_, drain)| *drain);
            roce.storm = storms.iter().rev().find(|(at, _)| *at == node).map(|(_, storm)| *storm);
        }
        wire
    }

    /// The virtual lane or priority of a service level.
    pub fn lane_of(&self, level: ServiceLevel) -> u8 {
        match (&self.nic.wire, &self.link.control) {
            (Encapsulation::Roce(roce), FlowControlConfig::Pause(pause)) => {
                // Where the tag counts, it has the class selector of the DSCP.
                let dscp = roce.dscp[level.index()];
                let pcp = Priority::truncate(dscp.get() >> 3);
                pause.priorities.priority(Some(pcp), Some(dscp)).get()
            }
            _ => self.sl2vl[level.index()],
        }
    }
}

/// What one `mtu` is for frames of this size on a link of this rate.
pub fn scale(technology: Technology, frame: Bytes, rate: BitRate) -> Scale {
    Scale { tau: frame.time_at(rate), frame: frames::as_buffered(technology, frame) }
}

/// Reads `[fabric]`, builds its graph and its routes, and proves that they lead everywhere.
pub fn read(fields: &Fields<'_>) -> Option<FabricSettings> {
    let faults_before = fields.problems.borrow().iter().count();
    let technology = frames::technology(fields.text("technology")?)?;
    let routing = Routing::named(fields.text("routing")?)?;
    refuse_strangers(fields, technology, routing);
    let mtu = mtu(fields, technology);
    let frame = fields.get("frame");
    check_frame(fields, mtu, frame);
    let rate = default_rate(technology);
    let link = fields.table("link").and_then(|link| link::read(&link, technology, rate));
    let switches = fields.table("switch")?;
    let switch = switch::read(&switches, technology, routing.0);
    let nics = fields.table("nic")?;
    let nic = nic::read(&nics, technology);
    let mut topology = (fields.text("shape").and_then(shapes::find)?.build)(fields)?;
    set_links_apart(&mut topology, fields);
    one_cable_a_nic(&topology, fields);
    let mut forwarding = Forwarding::new(&topology, routing);
    explicit::routes(fields, technology, &topology, &mut forwarding);
    let multicast = explicit::multicast(fields, &topology);
    let groups = group::read(fields, &topology);
    let services = switch::read_services(&switches, &topology);
    let domain = domain::read(&switches, &topology).unwrap_or_default();
    let afflicted = nic::read_afflicted(&nics, &topology);
    let (link, switch, nic) = (link?, switch?, nic?);
    check_buffer(&switches, switch.buffer, link.shares());
    check_buffer(&nics, nic.params.buffer, link.shares());
    let sl2vl = sl2vl(fields, link.shares());
    // A missing link or route that has been reported also makes nodes unreachable: report it once.
    let is_sound = fields.problems.borrow().iter().count() == faults_before;
    let waits = if is_sound {
        let pause_together = models::find(&switch.memory.kind).is_some_and(|it| it.pauses_together);
        reachability::check(fields, (&link.control, pause_together), &topology, &forwarding)
    } else {
        Default::default()
    };
    Some(FabricSettings {
        technology,
        topology,
        forwarding,
        routing,
        pairs: Vec::new(),
        waits,
        multicast,
        groups,
        mtu: mtu?,
        frame,
        scale: fields.scale,
        link,
        switch,
        nic,
        services,
        domain,
        afflicted,
        attached: Vec::new(),
        foreign: Vec::new(),
        hosts: Vec::new(),
        managed: false,
        sl2vl,
    })
}

/// Refuses the keys of `[fabric]` that belong to the other technology.
fn refuse_strangers(fields: &Fields<'_>, technology: Technology, routing: Routing) {
    if !routing.0.fits(technology) {
        let message = "a forwarding table of InfiniBand has one port a LID";
        fields.error("routing", message, "\"d-mod-k\"");
    }
    let keys: &[(&str, &str, &str)] = match technology {
        Technology::Infiniband => {
            &[("frame", "a full frame of InfiniBand follows from mtu", "mtu")]
        }
        Technology::Ethernet => &[
            ("sl2vl", "Ethernet has none", "priorities follow from nic.dscp and link.priorities"),
            ("multicast", "Ethernet has none", "groups go out by every port"),
            ("group", "Ethernet has no subnet administration", "technology = \"infiniband\""),
        ],
    };
    for (key, message, hint) in keys.iter().filter(|(key, ..)| fields.is_written(key)) {
        fields.error(key, *message, *hint);
    }
}

fn mtu(fields: &Fields<'_>, technology: Technology) -> Option<Bytes> {
    let mtu: Bytes = fields.get("mtu")?;
    if [256, 512, 1024, 2048, MTU_MAX].contains(&mtu.get()) {
        return Some(mtu);
    }
    let message = match technology {
        Technology::Infiniband => format!("{} B is not an InfiniBand MTU", mtu.get()),
        Technology::Ethernet => format!("{} B is not an MTU of RoCE: its payload", mtu.get()),
    };
    fields.refuse("mtu", message, "\"256 B\", \"512 B\", \"1024 B\", \"2048 B\" or \"4096 B\"")
}

/// A frame of its own size has at least what any has, and no more payload than links take.
fn check_frame(fields: &Fields<'_>, mtu: Option<Bytes>, frame: Option<Bytes>) {
    let (Some(frame), Some(mtu)) = (frame, mtu) else { return };
    let (least, most) = (frames::ETHERNET_MIN, mtu.get() + frames::TEST);
    if !(least..=most).contains(&frame.get()) {
        let message = format!("a frame of {frame} where mtu = \"{} B\"", mtu.get());
        let hint = format!("from \"{least} B\" to \"{most} B\": MAC header, mtu and FCS");
        fields.error("frame", message, hint);
    }
}

/// Gives the cables named in `links` their own rate and delay.
fn set_links_apart(topology: &mut Topology, fields: &Fields<'_>) {
    let is_listed = fields.text("shape") == Some(listed::SHAPE.name);
    for (fields, link) in fields.each::<OneLink>("links") {
        match cable_of(&link.a, topology) {
            Ok(cable) => {
                let cable = &mut topology.cables[cable];
                cable.rate = link.rate.or(cable.rate);
                cable.delay = link.delay.or(cable.delay);
            }
            Err(complaint) if !is_listed => fields.report("a", complaint),
            // The listed shape has made these cables and reported what is wrong with them.
            Err(_) => {}
        }
    }
}

fn cable_of(text: &str, topology: &Topology) -> Result<usize, Complaint> {
    let end = listed::parse_end(text, topology)?;
    topology.cable_at(end).ok_or_else(|| {
        let message = format!("no cable at {}", topology.end_name(end));
        Complaint::new(message, "with this shape, links only changes the cables there are")
    })
}

fn one_cable_a_nic(topology: &Topology, fields: &Fields<'_>) {
    let ends = || topology.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    for (node, adapter) in topology.nodes[..topology.adapters()].iter().enumerate() {
        let cables = ends().filter(|end| end.node == node).count();
        if cables > 1 || adapter.ports > 1 {
            let message = format!("{} has {cables} cables: a NIC has one port", adapter.name);
            return fields.error("shape", message, "one link a NIC, at port 1");
        }
    }
}

fn check_buffer(section: &Fields<'_>, buffer: Bytes, vls: u8) {
    let frame = section.scale.frame;
    if buffer.get() / u64::from(vls) < frame.get() {
        let message = match vls {
            1 => format!("{buffer} cannot hold a full frame of {frame}"),
            _ => format!("{buffer} over {vls} lanes cannot hold a full frame of {frame} each"),
        };
        section.error("buffer", message, "\"36 mtu\" is usual");
    }
}

/// The map as written; else OpenSM's, folded onto the lanes there are: level 0 to 14 to that lane,
/// level 15 to lane 7. Source: opensm `doc/qos-config.txt`, docs/spec/algorithms.md 1.3.
fn sl2vl(fields: &Fields<'_>, vls: u8) -> Vec<u8> {
    let Some(map) = fields.get::<Vec<u8>>("sl2vl") else {
        return (0..15).chain([7]).map(|lane| lane % vls).collect();
    };
    if map.len() != 16 || map.iter().any(|lane| *lane >= vls && *lane != 15) {
        let message = format!("sixteen lanes, each below {vls}, or 15 to discard the level");
        fields.error("sl2vl", message, "one entry a service level");
    }
    map
}

/// Port `port` of `switch`; a complaint if it has no cable.
fn cabled(topology: &Topology, switch: usize, port: u8) -> Result<PortNumber, Complaint> {
    let Node { name, ports, .. } = &topology.nodes[switch];
    let number = PortNumber::new(port)
        .map_err(|error| Complaint::new(error.to_string(), format!("{name} has {ports} ports")))?;
    let hint = format!("{name} has ports 1 to {ports}");
    let cable = topology.cable_at(End { node: switch, port: number });
    let none = || Complaint::new(format!("{name} has no cable at port {port}"), hint);
    cable.map(|_| number).ok_or_else(none)
}

/// The LID that belongs to an adapter, or a complaint.
fn adapter_lid(topology: &Topology, lid: u16) -> Result<Lid, Complaint> {
    let mut lids = topology.nodes[..topology.adapters()].iter().map(|node| node.lid);
    let none = || Complaint::new(format!("no NIC has LID {lid}"), "see fabric.nodes");
    lids.find(|known| known.get() == lid).ok_or_else(none)
}
