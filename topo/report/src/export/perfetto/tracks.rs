//! Which track is whose: nodes, their ports and flows, the fabric as a whole, the host.

use super::trace::{Trace, Track};
use crate::data::Run;
use std::collections::BTreeMap;

/// Tracks by what they are about; those of lanes, flows and workers appear when first asked for.
pub struct Tracks<'a> {
    run: &'a Run,
    /// The fabric as a whole.
    pub fabric: Track,
    nodes: Vec<Track>,
    ports: BTreeMap<&'a str, Track>,
    below: BTreeMap<(Track, String), Track>,
    host: Option<Track>,
}

impl<'a> Tracks<'a> {
    /// The fabric first, then every node with its ports.
    pub fn new(run: &'a Run, trace: &mut Trace) -> Tracks<'a> {
        let fabric = trace.process(run.nodes.len(), "fabric");
        let named = run.nodes.iter().enumerate();
        let nodes: Vec<Track> =
            named.map(|(number, node)| trace.process(number, &node.name)).collect();
        let mut outputs: Vec<usize> = (0..run.outputs.all.len()).collect();
        outputs.sort_by_key(|output| run.outputs.all[*output].from);
        let ports = outputs.into_iter().map(|output| {
            let output = &run.outputs.all[output];
            let name = format!("{} → {}", output.name, run.nodes[output.to].name);
            (output.name.as_str(), trace.track(nodes[output.from], &name))
        });
        let ports = ports.collect();
        Tracks { run, fabric, nodes, ports, below: BTreeMap::new(), host: None }
    }

    /// That of `node:port`; of the whole fabric if it has no such port.
    pub fn port(&self, name: &str) -> Track {
        self.ports.get(name).copied().unwrap_or(self.fabric)
    }

    /// That of a flow, below the adapter that sends it.
    pub fn flow(&mut self, name: &str, trace: &mut Trace) -> Track {
        let run = self.run;
        let flow = run.flows.iter().find(|flow| flow.flow == name);
        let source = flow.and_then(|flow| run.nodes.iter().position(|node| node.name == flow.src));
        let parent = source.map_or(self.fabric, |node| self.nodes[node]);
        self.below(parent, &format!("flow {name}"), trace)
    }

    /// That of a worker of this host.
    pub fn worker(&mut self, number: u64, trace: &mut Trace) -> Track {
        let process = self.run.nodes.len() + 1;
        let host = *self.host.get_or_insert_with(|| trace.process(process, "host"));
        self.below(host, &format!("worker {number}"), trace)
    }

    /// One of that name below another.
    pub fn below(&mut self, parent: Track, name: &str, trace: &mut Trace) -> Track {
        let made = || trace.track(parent, name);
        *self.below.entry((parent, name.to_owned())).or_insert_with(made)
    }
}
