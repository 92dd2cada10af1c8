//! Names users write: nodes, ports and flows, with `*`, `?` and ranges like `h[0-30,40]`.
//!
//! A port is `node:port`, with `:rx` or `:tx` where a direction matters; without a port number it
//! is every cabled port of the node. A flow is `from>to`. Measures, captures and impairments may name
//! ports with an interface of the host as well.

use crate::keyfile::problem::{Complaint, did_you_mean};
use crate::topology::Topology;
use emulation::wiring::{End, NodeKind};
use proto::events::Direction;

mod pattern;

use pattern::Pattern;

/// The nodes that `text` names, in node order.
///
/// # Errors
/// If the pattern is malformed or matches no node.
pub fn nodes(topology: &Topology, text: &str) -> Result<Vec<usize>, Complaint> {
    let pattern = Pattern::parse(text)?;
    let all = topology.nodes.iter().enumerate();
    let found: Vec<usize> =
        all.filter(|(_, node)| pattern.matches(&node.name)).map(|(index, _)| index).collect();
    if found.is_empty() {
        return Err(no_match(topology, text));
    }
    match pattern.unmatched(topology.nodes.iter().map(|node| node.name.as_str())) {
        Some(missing) => Err(no_match(topology, &missing)),
        None => Ok(found),
    }
}

fn no_match(topology: &Topology, text: &str) -> Complaint {
    let names = || topology.nodes.iter().map(|node| node.name.as_str());
    let hint = match (names().next(), names().next_back()) {
        (Some(first), Some(last)) if topology.nodes.len() > 8 => {
            let adapters = topology.adapters();
            let last_adapter = topology.nodes[..adapters].last().map_or(last, |node| &node.name);
            format!("adapters are {first} to {last_adapter}, the last switch is {last}")
        }
        _ => did_you_mean(text, names()),
    };
    Complaint::new(format!("no node is called {text:?}"), hint)
}

/// The adapters that `text` names.
///
/// # Errors
/// If it names no adapter.
pub fn adapters(topology: &Topology, text: &str) -> Result<Vec<usize>, Complaint> {
    let mut found = nodes(topology, text)?;
    found.retain(|node| topology.nodes[*node].kind == NodeKind::Nic);
    if found.is_empty() {
        let message = format!("{text:?} names switches");
        return Err(Complaint::new(message, "only NICs send and receive"));
    }
    Ok(found)
}

/// The cabled ports that `text` (`node` or `node:port`) names.
///
/// # Errors
/// If it names none.
pub fn ends(topology: &Topology, text: &str) -> Result<Vec<End>, Complaint> {
    among(topology, cabled(topology), text)
}

fn cabled(topology: &Topology) -> impl Iterator<Item = End> {
    topology.cables.iter().flat_map(|cable| [cable.a, cable.b])
}

/// The ports that `text` (`node` or `node:port`) names, cabled or attached to an interface of the host.
///
/// # Errors
/// If it names none.
pub fn senders(topology: &Topology, text: &str) -> Result<Vec<End>, Complaint> {
    among(topology, cabled(topology).chain(topology.attached.iter().copied()), text)
}

/// Those of `all` that `text` names.
fn among(
    topology: &Topology,
    all: impl Iterator<Item = End>,
    text: &str,
) -> Result<Vec<End>, Complaint> {
    let (name, port) = text.split_once(':').unwrap_or((text, "*"));
    let port_pattern = Pattern::parse(port)?;
    let wanted = nodes(topology, name)?;
    let mut found: Vec<End> = all
        .filter(|end| wanted.contains(&end.node))
        .filter(|end| port_pattern.matches(&end.port.to_string()))
        .collect();
    found.sort();
    if found.is_empty() {
        let ports = topology.nodes[wanted[0]].ports;
        let hint = format!("{} has ports 1 to {ports}", topology.nodes[wanted[0]].name);
        return Err(Complaint::new(format!("no cabled port is called {text:?}"), hint));
    }
    Ok(found)
}

/// The ports, attached ones among them, and directions that `text` (`node[:port][:rx|:tx]`) names;
/// sent frames if it names none.
///
/// # Errors
/// If it names none.
pub fn directed(topology: &Topology, text: &str) -> Result<Vec<(End, Direction)>, Complaint> {
    let (rest, direction) = match text.rsplit_once(':') {
        Some((rest, "rx")) => (rest, Direction::Rx),
        Some((rest, "tx")) => (rest, Direction::Tx),
        _ => (text, Direction::Tx),
    };
    Ok(senders(topology, rest)?.into_iter().map(|end| (end, direction)).collect())
}

/// The pairs of adapters that `text` (`from>to`) names, without pairs of a node with itself.
///
/// # Errors
/// If it names none.
pub fn flows(topology: &Topology, text: &str) -> Result<Vec<(usize, usize)>, Complaint> {
    let Some((from, to)) = text.split_once('>') else {
        let message = format!("{text:?} is not a flow");
        return Err(Complaint::new(message, "a flow is written from>to, for example \"h*>h31\""));
    };
    let to = adapters(topology, to.trim())?;
    let pairs: Vec<_> = adapters(topology, from.trim())?
        .into_iter()
        .flat_map(|from| to.iter().map(move |to| (from, *to)))
        .filter(|(from, to)| from != to)
        .collect();
    if pairs.is_empty() {
        return Err(Complaint::new(format!("{text:?} is not a flow"), "no node sends to itself"));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
