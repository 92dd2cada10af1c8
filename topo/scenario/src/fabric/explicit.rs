//! `[[fabric.route]]` and `[[fabric.multicast]]`: routes written out by hand.

use super::{adapter_lid, cabled};
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::keyfile::problem::Complaint;
use crate::names;
use crate::routes::Forwarding;
use crate::topology::Topology;
use emulation::wiring::NodeKind;
use proto::ids::{Lid, PortNumber};
use proto::params::{KeyTable, Kind, Params};
use proto::technology::Technology;
use switchd::config::MulticastRoute;

const PORTS: Kind = Kind::List(&Kind::Whole(1, 254));

/// The keys of `[[fabric.route]]`.
pub static ROUTE: KeyTable =
    KeyTable::new("what a switch does with some destinations", Route::KEYS);

proto::params! {
    /// One `[[fabric.route]]` as written.
    pub struct Route {
        /// The switch.
        at: String = Text, Required;
        /// One destination.
        lid: Option<u16> = Whole(1, 0xbfff), Optional;
        /// A run of them, "1-5".
        lids: Option<String> = Text, Optional;
        /// NICs by name.
        to: Option<Texts> = TEXTS, Optional;
        /// The port they leave by; or ports.
        port: Option<u8> = Whole(1, 254), Optional;
        /// The ports that lead there, by preference; Ethernet only.
        ports: Option<Vec<u8>> = PORTS, Optional;
    }
}

/// The keys of `[[fabric.multicast]]`.
pub static MULTICAST: KeyTable =
    KeyTable::new("where a switch sends copies for a group", Group::KEYS);

proto::params! {
    /// One `[[fabric.multicast]]` as written.
    pub struct Group {
        /// The switch.
        at: String = Text, Required;
        /// The group.
        lid: u16 = Whole(0xc000, 0xfffe), Required;
        /// The ports, the one a frame came in on left out by itself.
        ports: Vec<u8> = PORTS, Required;
    }
}

/// Applies every `[[fabric.route]]`, in the order of the file.
pub fn routes(
    fields: &Fields<'_>,
    technology: Technology,
    topology: &Topology,
    forwarding: &mut Forwarding,
) {
    for (fields, route) in fields.each::<Route>("route") {
        let lids = destinations(&fields, &route, topology);
        let Some(at) = switch(&fields, &route.at, topology) else { continue };
        let ports = ports(&fields, &route, technology, topology, at);
        if let (Some(lids), Some(ports)) = (lids, ports) {
            lids.into_iter().for_each(|lid| forwarding.set(at, lid, &ports));
        }
    }
}

/// The ports of a route, `port` or `ports`, exactly one of them; `None` if something is wrong with them.
fn ports(
    fields: &Fields<'_>,
    route: &Route,
    technology: Technology,
    topology: &Topology,
    at: usize,
) -> Option<Vec<PortNumber>> {
    let (key, numbers) = match (route.port, route.ports.as_deref()) {
        (Some(port), None | Some([])) => ("port", vec![port]),
        (None, Some(ports @ [_, ..])) => ("ports", ports.to_vec()),
        // A port number that is wrong has been reported.
        (None, _) if fields.has_error("port") => return None,
        _ => {
            let message = "a route leads by port or by ports: exactly one of them";
            return fields.refuse("port", message, "port = 2, or ports = [2, 3] by preference");
        }
    };
    if technology == Technology::Infiniband && numbers.len() > 1 {
        let message = "a forwarding table of InfiniBand has one port a LID";
        return fields.refuse(key, message, "port = 2");
    }
    let mut ports = Vec::new();
    for number in numbers {
        let port = fields.accept(key, cabled(topology, at, number))?;
        if ports.contains(&port) {
            fields.error(key, format!("port {port} twice"), "each once");
        }
        ports.push(port);
    }
    Some(ports)
}

/// Reads every `[[fabric.multicast]]`, with the node of its switch.
pub fn multicast(fields: &Fields<'_>, topology: &Topology) -> Vec<(usize, MulticastRoute)> {
    let mut all: Vec<(usize, MulticastRoute)> = Vec::new();
    for (fields, group) in fields.each::<Group>("multicast") {
        let Some(at) = switch(&fields, &group.at, topology) else { continue };
        let lid = Lid::new(group.lid);
        if all.iter().any(|(node, route)| *node == at && route.lid == lid) {
            let message = format!("{} has this group already", topology.nodes[at].name);
            fields.error("lid", message, "put all ports in one");
        }
        let cabled = |port: &u8| fields.accept("ports", cabled(topology, at, *port));
        let mut ports: Vec<PortNumber> = group.ports.iter().filter_map(cabled).collect();
        ports.sort();
        ports.dedup();
        all.push((at, MulticastRoute { lid, ports }));
    }
    all
}

fn switch(fields: &Fields<'_>, text: &str, topology: &Topology) -> Option<usize> {
    let found = fields.accept("at", names::nodes(topology, text))?;
    match found[..] {
        [one] if topology.nodes[one].kind == NodeKind::Switch => Some(one),
        [_] => fields.refuse("at", format!("{text:?} is a NIC"), "switches have routes"),
        _ => fields.refuse("at", format!("{text:?} names several"), "one switch each"),
    }
}

/// The LIDs a route is for: `lid`, `lids` or `to`, exactly one of them.
fn destinations(fields: &Fields<'_>, route: &Route, topology: &Topology) -> Option<Vec<Lid>> {
    match (route.lid, &route.lids, &route.to) {
        (Some(lid), None, None) => {
            fields.accept("lid", adapter_lid(topology, lid)).map(|lid| vec![lid])
        }
        (None, Some(lids), None) => fields.accept("lids", range(lids, topology)),
        (None, None, Some(to)) => {
            let nodes = fields.gather("to", to, |text| names::adapters(topology, text))?;
            Some(nodes.iter().map(|node| topology.nodes[*node].lid).collect())
        }
        (lid, lids, to) => {
            let given = [("to", to.is_some()), ("lids", lids.is_some()), ("lid", lid.is_some())];
            let key = given.iter().find(|(_, given)| *given).map_or("lid", |(key, _)| key);
            let message = "a route is for lid, lids or to: exactly one of them";
            fields.refuse(key, message, "lid = 4, lids = \"1-5\" or to = \"h3\"")
        }
    }
}

/// The adapters' LIDs within `"first-last"`.
fn range(text: &str, topology: &Topology) -> Result<Vec<Lid>, Complaint> {
    let malformed =
        || Complaint::new(format!("{text:?} is not a range of LIDs"), "for example \"1-5\"");
    let (first, last) = text.split_once('-').ok_or_else(malformed)?;
    let number = |text: &str| text.trim().parse::<u16>().map_err(|_| malformed());
    let wanted = number(first)?..=number(last)?;
    let adapters = &topology.nodes[..topology.adapters()];
    let found: Vec<Lid> =
        adapters.iter().map(|node| node.lid).filter(|lid| wanted.contains(&lid.get())).collect();
    if found.is_empty() {
        return Err(Complaint::new(format!("no NIC has a LID in {text}"), "see fabric.nodes"));
    }
    Ok(found)
}
