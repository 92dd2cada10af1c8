//! `[fabric]`: the graph, its routes, and what links, switches and NICs have in common.

use crate::frames;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::keyfile::quantity::Scale;
use crate::routes::Forwarding;
use crate::scenario::reachability;
use crate::shapes::{self, listed};
use crate::topology::Topology;
use nicd::config::{CnpBody, QueuePairOrder};
use proto::ids::{Lid, PortNumber};
use proto::link::ArbitrationConfig;
use proto::units::{BitRate, Bytes, Duration};
use switchd::config::{MemoryConfig, MulticastRoute, Read};

mod explicit;
mod keys;

pub use keys::KEYS;

/// The MTU if none is given, in octets of payload.
pub const DEFAULT_MTU: u64 = 2048;
/// The largest MTU. Source: IBTA Vol 1, 7.7.8.
pub const MTU_MAX: u64 = 4096;
/// The link rate if none is given: four lanes of single data rate.
pub const DEFAULT_GBPS: u64 = 8;

/// What a scenario runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricSettings {
    /// The graph.
    pub topology: Topology,
    /// Unicast routes of every switch.
    pub forwarding: Forwarding,
    /// Multicast routes, with the node of the switch.
    pub multicast: Vec<(usize, MulticastRoute)>,
    /// Largest payload of one packet.
    pub mtu: Bytes,
    /// What one `mtu` is, in time and in room.
    pub scale: Scale,
    /// The default link.
    pub link: Link,
    /// Every switch.
    pub switch: Switch,
    /// Every NIC.
    pub nic: Nic,
    /// Service level to virtual lane, sixteen entries.
    pub sl2vl: Vec<u8>,
}

/// The default link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Data rate.
    pub rate: BitRate,
    /// Time of flight.
    pub delay: Duration,
    /// Physical lanes.
    pub lanes: u8,
    /// Operational data lanes.
    pub vls: u8,
    /// Who goes first among lanes.
    pub arbitration: ArbitrationConfig,
}

/// What all switches have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Memory model and reading discipline.
    pub memory: MemoryConfig,
    /// Input buffer of one port.
    pub buffer: Bytes,
}

/// What all NICs have in common; the names are those of [`nicd::config::NicConfig`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "documented where they end up")]
pub struct Nic {
    pub qp_order: QueuePairOrder,
    pub ack_every: u32,
    pub ack_delay: Duration,
    pub ack_timeout: Duration,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub rnr_timer: Duration,
    pub receive_depth: u32,
    pub receive_refill: Duration,
    pub cnp_body: CnpBody,
    pub buffer: Bytes,
}

impl FabricSettings {
    /// The rate of cable `cable`.
    pub fn rate_of(&self, cable: usize) -> BitRate {
        self.topology.cables[cable].rate.unwrap_or(self.link.rate)
    }
}

/// What one `mtu` is for this MTU on a link of this rate.
pub fn scale(mtu: Bytes, rate: BitRate) -> Scale {
    let frame = frames::full_frame(mtu);
    Scale { tau: frame.time_at(rate), frame: frames::as_buffered(frame) }
}

/// Reads `[fabric]`, builds its graph and its routes, and proves that they lead everywhere.
pub fn read(
    fields: &Fields<'_>,
    problems: &mut Problems,
    warnings: &mut Problems,
) -> Option<FabricSettings> {
    let faults_before = problems.iter().count();
    let mtu = mtu(fields, problems);
    let link = fields.table("link").and_then(|link| read_link(&link, problems));
    let switch = fields.table("switch").and_then(|switch| read_switch(&switch));
    let nic = fields.table("nic").and_then(|nic| read_nic(&nic));
    let shape = fields.text("shape").and_then(shapes::find)?;
    let mut topology = (shape.build)(fields, problems)?;
    set_links_apart(&mut topology, fields, problems);
    one_cable_a_nic(&topology, fields, problems);
    let mut forwarding = Forwarding::d_mod_k(&topology);
    explicit::routes(fields, &topology, &mut forwarding, problems);
    let multicast = explicit::multicast(fields, &topology, problems);
    let (link, switch, nic) = (link?, switch?, nic?);
    for (section, buffer) in [("switch", switch.buffer), ("nic", nic.buffer)] {
        check_buffer(fields, section, buffer, link.vls, problems);
    }
    let sl2vl = sl2vl(fields, link.vls, problems);
    // Where links or routes are missing for a reason already told, unreachable nodes are its echo.
    if problems.iter().count() == faults_before {
        reachability::check(fields, &topology, &forwarding, problems, warnings);
    }
    let scale = *fields.scale();
    Some(FabricSettings {
        topology,
        forwarding,
        multicast,
        mtu: mtu?,
        scale,
        link,
        switch,
        nic,
        sl2vl,
    })
}

fn mtu(fields: &Fields<'_>, problems: &mut Problems) -> Option<Bytes> {
    let mtu = fields.size("mtu")?;
    if [256, 512, 1024, 2048, MTU_MAX].contains(&mtu.get()) {
        return Some(mtu);
    }
    let complaint = Complaint::new(
        format!("{} B is no InfiniBand MTU", mtu.get()),
        "\"256 B\", \"512 B\", \"1024 B\", \"2048 B\" or \"4096 B\"",
    );
    fields.report(problems, "mtu", complaint);
    None
}

fn read_link(fields: &Fields<'_>, problems: &mut Problems) -> Option<Link> {
    let vls = fields.whole("vls")?;
    let arbitration = match fields.table("arbitration") {
        Some(tables) => read_arbitration(&tables, vls, problems),
        None => ArbitrationConfig::default(),
    };
    Some(Link {
        rate: fields.rate("rate")?,
        delay: fields.time("delay")?,
        lanes: fields.whole("lanes")?,
        vls,
        arbitration,
    })
}

fn read_arbitration(fields: &Fields<'_>, vls: u8, problems: &mut Problems) -> ArbitrationConfig {
    let mut table = |key: &str| {
        let pairs = fields.pairs::<u8>(key);
        let sound = |pair: &Option<(u8, u8)>| pair.is_some_and(|(lane, _)| lane < vls);
        if !pairs.iter().all(sound) {
            let message = format!("entries are [lane, weight], lanes 0 to {}", vls - 1);
            fields.report(problems, key, Complaint::new(message, "for example [[0, 4], [1, 8]]"));
        }
        pairs.into_iter().flatten().collect()
    };
    let (high, low) = (table("high"), table("low"));
    ArbitrationConfig { high, low, high_limit: fields.whole("high_limit").unwrap_or(0) }
}

fn read_switch(fields: &Fields<'_>) -> Option<Switch> {
    let read = match fields.text("read")? {
        "single" => Read::Single,
        _ => Read::Multi,
    };
    let memory =
        MemoryConfig { kind: fields.text("memory")?.to_owned(), read, ..MemoryConfig::default() };
    Some(Switch { memory, buffer: fields.size("buffer")? })
}

fn read_nic(fields: &Fields<'_>) -> Option<Nic> {
    Some(Nic {
        qp_order: fields.word("qp_order", &keys::QP_ORDERS)?,
        ack_every: fields.whole("ack_every")?,
        ack_delay: fields.time("ack_delay")?,
        ack_timeout: fields.time("ack_timeout")?,
        retry_count: fields.whole("retry_count")?,
        rnr_retry: fields.whole("rnr_retry")?,
        rnr_timer: fields.time("rnr_timer")?,
        receive_depth: fields.whole("receive_depth")?,
        receive_refill: fields.time("receive_refill")?,
        cnp_body: fields.word("cnp_body", &keys::CNP_BODIES)?,
        buffer: fields.size("buffer")?,
    })
}

/// Gives the cables named in `links` their own rate and delay.
fn set_links_apart(topology: &mut Topology, fields: &Fields<'_>, problems: &mut Problems) {
    let is_listed = fields.text("shape") == Some(listed::SHAPE.name);
    for link in fields.tables("links") {
        match link.text("a").map(|text| cable_of(text, topology)) {
            Some(Ok(cable)) => {
                topology.cables[cable].rate = link.rate("rate");
                topology.cables[cable].delay = link.time("delay");
            }
            // The listed shape has made these cables and told what is wrong with them.
            Some(Err(complaint)) if !is_listed => link.report(problems, "a", complaint),
            _ => {}
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

fn one_cable_a_nic(topology: &Topology, fields: &Fields<'_>, problems: &mut Problems) {
    let ends = || topology.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    for (node, adapter) in topology.nodes[..topology.adapters()].iter().enumerate() {
        let cables = ends().filter(|end| end.node == node).count();
        if cables > 1 || adapter.ports > 1 {
            let message = format!("{} has {cables} cables: a NIC has one port", adapter.name);
            let hint = "w begins with 1 in an xgft; by hand, one link a NIC, at port 1";
            fields.report(problems, "shape", Complaint::new(message, hint));
            return;
        }
    }
}

fn check_buffer(
    fields: &Fields<'_>,
    section: &str,
    buffer: Bytes,
    vls: u8,
    problems: &mut Problems,
) {
    let frame = fields.scale().frame;
    if buffer.get() / u64::from(vls) < frame.get()
        && let Some(section) = fields.table(section)
    {
        let message = format!("{buffer} over {vls} lanes cannot hold a full frame of {frame} each");
        section.report(problems, "buffer", Complaint::new(message, "\"36 mtu\" is usual"));
    }
}

/// The map as written; else OpenSM's, folded onto the lanes there are: level 0 to 14 to that lane,
/// level 15 to lane 7. Source: opensm `doc/qos-config.txt`, algorithms.md 1.3.
fn sl2vl(fields: &Fields<'_>, vls: u8, problems: &mut Problems) -> Vec<u8> {
    if !fields.has("sl2vl") {
        return (0..15).chain([7]).map(|lane| lane % vls).collect();
    }
    let map: Vec<u8> = fields.wholes("sl2vl");
    if map.len() != 16 || map.iter().any(|lane| *lane >= vls && *lane != 15) {
        let message = format!("sixteen lanes, each below {vls}, or 15 to discard the level");
        fields.report(problems, "sl2vl", Complaint::new(message, "one entry a service level"));
    }
    map
}

/// Whether `port` of `switch` is cabled; a complaint if not.
fn cabled(topology: &Topology, switch: usize, port: u8) -> Result<PortNumber, Complaint> {
    let name = &topology.nodes[switch].name;
    let ports = topology.nodes[switch].ports;
    let number = PortNumber::new(port)
        .map_err(|error| Complaint::new(error.to_string(), format!("{name} has {ports} ports")))?;
    match topology.cable_at(emulation::wiring::End { node: switch, port: number }) {
        Some(_) => Ok(number),
        None => Err(Complaint::new(
            format!("{name} has no cable at port {port}"),
            format!("{name} has ports 1 to {ports}"),
        )),
    }
}

/// The LID that belongs to an adapter, or a complaint.
fn adapter_lid(topology: &Topology, lid: u16) -> Result<Lid, Complaint> {
    let adapters = &topology.nodes[..topology.adapters()];
    match adapters.iter().find(|node| node.lid.get() == lid) {
        Some(node) => Ok(node.lid),
        None => Err(Complaint::new(format!("no NIC has LID {lid}"), "see fabric.nodes")),
    }
}
