//! The tracks of a trace by subject: nodes, their ports and flows, the fabric as a whole, the host.

use super::trace::{Trace, Track};
use crate::data::Run;
use results::saturation::Output;
use std::collections::BTreeMap;

/// A trace with its tracks by subject; those of lanes, flows and workers are added at their first use.
pub struct Tracks<'a> {
    /// The trace.
    pub trace: Trace,
    /// The fabric as a whole.
    pub fabric: Track,
    run: &'a Run,
    nodes: Vec<Track>,
    ports: BTreeMap<&'a str, Track>,
    below: BTreeMap<(Track, String), Track>,
    host: Option<Track>,
}

impl<'a> Tracks<'a> {
    /// The fabric first, then every node with its ports.
    pub fn new(run: &'a Run) -> Tracks<'a> {
        let mut trace = Trace::default();
        let all = &run.graph.nodes;
        let fabric = trace.process(all.len(), "fabric");
        let named = all.iter().enumerate();
        let nodes: Vec<Track> =
            named.map(|(number, node)| trace.process(number, &node.name)).collect();
        let mut outputs: Vec<&Output> = run.graph.outputs.iter().collect();
        outputs.sort_by_key(|output| output.from);
        let ports = outputs.into_iter().map(|output| {
            let name = format!("{} → {}", output.name, all[output.to].name);
            (output.name.as_str(), trace.track(nodes[output.from], &name))
        });
        let ports = ports.collect();
        Tracks { trace, fabric, run, nodes, ports, below: BTreeMap::new(), host: None }
    }

    /// That of `node:port`; of the whole fabric if it has no such port.
    pub fn port(&self, name: &str) -> Track {
        self.ports.get(name).copied().unwrap_or(self.fabric)
    }

    /// That of a flow, below the adapter that sends it.
    pub fn flow(&mut self, name: &str) -> Track {
        let Run { flows, graph, .. } = self.run;
        let flow = flows.iter().find(|flow| flow.flow == name);
        let source = flow.and_then(|flow| graph.nodes.iter().position(|n| n.name == flow.src));
        self.below(source.map_or(self.fabric, |node| self.nodes[node]), &format!("flow {name}"))
    }

    /// That of a worker of this host.
    pub fn worker(&mut self, number: u64) -> Track {
        let process = self.nodes.len() + 1;
        let host = *self.host.get_or_insert_with(|| self.trace.process(process, "host"));
        self.below(host, &format!("worker {number}"))
    }

    /// One of that name below another.
    pub fn below(&mut self, parent: Track, name: &str) -> Track {
        let made = || self.trace.track(parent, name);
        *self.below.entry((parent, name.to_owned())).or_insert_with(made)
    }
}
