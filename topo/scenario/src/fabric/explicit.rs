//! `[[fabric.route]]` and `[[fabric.multicast]]`: routes written out by hand.

use super::{adapter_lid, cabled};
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use crate::routes::Forwarding;
use crate::topology::Topology;
use emulation::wiring::NodeKind;
use proto::ids::{Lid, PortNumber};
use proto::technology::Technology;
use switchd::config::MulticastRoute;

/// Applies every `[[fabric.route]]`, in the order of the file.
pub fn routes(
    fields: &Fields<'_>,
    technology: Technology,
    topology: &Topology,
    forwarding: &mut Forwarding,
    problems: &mut Problems,
) {
    for route in fields.tables("route") {
        let at = switch(&route, topology, problems);
        let lids = destinations(&route, topology, problems);
        let Some(at) = at else { continue };
        let ports = ports(&route, technology, topology, at, problems);
        if !ports.is_empty() {
            lids.into_iter().for_each(|lid| forwarding.set(at, lid, &ports));
        }
    }
}

/// The ports of a route, `port` or `ports`, exactly one of them; none if something is wrong with them.
fn ports(
    route: &Fields<'_>,
    technology: Technology,
    topology: &Topology,
    at: usize,
    problems: &mut Problems,
) -> Vec<PortNumber> {
    let (key, numbers): (&str, Vec<u8>) = match (route.whole("port"), route.wholes("ports")) {
        (Some(port), ports) if ports.is_empty() => ("port", vec![port]),
        (None, ports) if !ports.is_empty() => ("ports", ports),
        // A port number that is none has been reported.
        (None, _) if route.has("port") => return Vec::new(),
        _ => {
            let complaint = Complaint::new(
                "a route leads by port or by ports: exactly one of them",
                "port = 2, or ports = [2, 3] by preference",
            );
            route.report(problems, "port", complaint);
            return Vec::new();
        }
    };
    if technology == Technology::Infiniband && numbers.len() > 1 {
        let message = "a forwarding table of InfiniBand has one port a LID";
        route.report(problems, key, Complaint::new(message, "port = 2"));
        return Vec::new();
    }
    let mut ports = Vec::new();
    for number in numbers {
        match cabled(topology, at, number) {
            Ok(port) if ports.contains(&port) => {
                let complaint = Complaint::new(format!("port {port} twice"), "each once");
                route.report(problems, key, complaint);
            }
            Ok(port) => ports.push(port),
            Err(complaint) => route.report(problems, key, complaint),
        }
    }
    ports
}

/// Reads every `[[fabric.multicast]]`, with the node of its switch.
pub fn multicast(
    fields: &Fields<'_>,
    topology: &Topology,
    problems: &mut Problems,
) -> Vec<(usize, MulticastRoute)> {
    let mut all: Vec<(usize, MulticastRoute)> = Vec::new();
    for group in fields.tables("multicast") {
        let Some(at) = switch(&group, topology, problems) else { continue };
        let Some(lid) = group.whole("lid").map(Lid::new) else { continue };
        if all.iter().any(|(node, route)| *node == at && route.lid == lid) {
            let message = format!("{} has this group already", topology.nodes[at].name);
            group.report(problems, "lid", Complaint::new(message, "put all ports in one"));
        }
        let mut ports: Vec<PortNumber> = Vec::new();
        for port in group.wholes("ports") {
            match cabled(topology, at, port) {
                Ok(port) => ports.push(port),
                Err(complaint) => group.report(problems, "ports", complaint),
            }
        }
        ports.sort();
        ports.dedup();
        all.push((at, MulticastRoute { lid, ports }));
    }
    all
}

fn switch(fields: &Fields<'_>, topology: &Topology, problems: &mut Problems) -> Option<usize> {
    let text = fields.text("at")?;
    let found = match names::nodes(topology, text) {
        Ok(found) => found,
        Err(complaint) => {
            fields.report(problems, "at", complaint);
            return None;
        }
    };
    match found[..] {
        [one] if topology.nodes[one].kind == NodeKind::Switch => Some(one),
        [_] => {
            let complaint = Complaint::new(format!("{text:?} is a NIC"), "switches have routes");
            fields.report(problems, "at", complaint);
            None
        }
        _ => {
            let complaint = Complaint::new(format!("{text:?} names several"), "one switch each");
            fields.report(problems, "at", complaint);
            None
        }
    }
}

/// The LIDs a route is for: `lid`, `lids` or `to`, exactly one of them.
fn destinations(fields: &Fields<'_>, topology: &Topology, problems: &mut Problems) -> Vec<Lid> {
    let given: Vec<&str> =
        ["lid", "lids", "to"].into_iter().filter(|key| fields.has(key)).collect();
    let &[key] = &given[..] else {
        let complaint = Complaint::new(
            "a route is for lid, lids or to: exactly one of them",
            "lid = 4, lids = \"1-5\" or to = \"h3\"",
        );
        fields.report(problems, given.last().copied().unwrap_or("lid"), complaint);
        return Vec::new();
    };
    let found = match key {
        "lid" => fields
            .whole("lid")
            .map_or(Ok(Vec::new()), |lid: u16| adapter_lid(topology, lid).map(|lid| vec![lid])),
        "lids" => range(fields.text("lids").unwrap_or_default(), topology),
        _ => fields.texts("to").iter().try_fold(Vec::new(), |mut all, (text, _)| {
            let nodes = names::adapters(topology, text)?;
            all.extend(nodes.iter().map(|node| topology.nodes[*node].lid));
            Ok(all)
        }),
    };
    found.unwrap_or_else(|complaint| {
        fields.report(problems, key, complaint);
        Vec::new()
    })
}

/// The adapters' LIDs within `"first-last"`.
fn range(text: &str, topology: &Topology) -> Result<Vec<Lid>, Complaint> {
    let malformed =
        || Complaint::new(format!("{text:?} is no range of LIDs"), "for example \"1-5\"");
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
