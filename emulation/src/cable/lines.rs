//! The wiring as one process sees it: where each of its lines leads.
//!
//! A *line* is one direction of a link. Its index is twice the link's plus the sending end, the same in every
//! process.

use super::shim::{SendingEnd, Shim};
use crate::wiring::{End, Wiring};
use proto::frame::{Frame, Integrity};
use proto::ids::PortNumber;
use proto::units::{Duration, Instant};

/// The far end of a line on which this process sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A device of this worker, reached through memory.
    Device {
        /// Its index among the worker's devices.
        device: usize,
        /// The port there.
        port: PortNumber,
    },
    /// A process, this one included, reached through the socket.
    Process(usize),
    /// The far end of an attached interface.
    Outside,
}

/// A line on which a device of this process sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The link.
    pub link: u32,
    /// The end of it that sends.
    pub end: SendingEnd,
    /// The far end.
    pub to: Destination,
    /// Propagation delay.
    pub delay: Duration,
    /// Wire time of one full data frame, the unit of lateness.
    pub frame_time: Duration,
}

impl Outgoing {
    /// The line's index.
    pub(crate) const fn index(&self) -> usize {
        line_index(self.link, self.end)
    }

    /// The index of the line in the other direction.
    pub(crate) const fn opposite(&self) -> usize {
        line_index(self.link, self.end.other())
    }

    /// Whether frames leave this worker by a socket.
    pub(crate) const fn is_by_socket(&self) -> bool {
        !matches!(self.to, Destination::Device { .. })
    }

    /// The shim before `frame`, the `sequence`th of run `epoch` on this line, whose last bit leaves at `stamp`.
    pub fn shim(&self, frame: &Frame, epoch: u32, sequence: u32, stamp: Instant) -> Shim {
        Shim {
            kind: frame.kind,
            flags: if frame.integrity == Integrity::Aborted { Shim::ABORTED } else { 0 },
            end: self.end,
            link: self.link,
            epoch,
            sequence,
            length: frame.octets_len() as u32,
            stamp,
        }
    }
}

/// A line on which a device of this process receives through the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The link.
    pub link: u32,
    /// The far end, which sends.
    pub end: SendingEnd,
    /// The process that hosts the far end; this one for an attached interface.
    pub process: usize,
    /// The far end is outside the fabric.
    pub outside: bool,
    /// Index of the receiving device among the worker's devices.
    pub device: usize,
    /// The port there.
    pub port: PortNumber,
    /// Propagation delay.
    pub delay: Duration,
}

impl Incoming {
    /// The line's index.
    pub(crate) const fn index(&self) -> usize {
        line_index(self.link, self.end)
    }
}

/// Why a wiring cannot be used: `hosts` does not match the nodes, a link ends at a port that does not exist, or
/// two links, one of which may be an attached interface, share a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LinesError(String);

/// The index of the line of `link` on which `end` sends.
const fn line_index(link: u32, end: SendingEnd) -> usize {
    link as usize * 2 + end as usize
}

/// All lines of one process.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// By own device, then port index.
    outgoing: Vec<Vec<Option<Outgoing>>>,
    /// By line index; `None` where this process does not receive the line through a socket.
    incoming: Vec<Option<Incoming>>,
}

impl Lines {
    /// The lines of process `process`. `hosts[node]` is the process of each node; `local` joins devices of this
    /// process by memory. Attached interfaces are links behind those of the fabric: end `a` is the port, `b` is
    /// outside.
    ///
    /// # Errors
    /// If the wiring contradicts itself.
    pub fn new(
        wiring: &Wiring,
        hosts: &[usize],
        process: usize,
        local: bool,
    ) -> Result<Lines, LinesError> {
        let (named, nodes) = (hosts.len(), wiring.nodes.len());
        if named != nodes {
            return Err(LinesError(format!("{named} hosts are named for {nodes} nodes")));
        }
        let count = wiring.links.len() + wiring.attached.len();
        let mut lines = Lines { outgoing: Vec::new(), incoming: vec![None; count * 2] };
        // By node: its index among the devices of this process.
        let mut own = Vec::with_capacity(nodes);
        for (node, host) in wiring.nodes.iter().zip(hosts) {
            let is_own = *host == process;
            own.push(is_own.then_some(lines.outgoing.len()));
            lines.outgoing.extend(is_own.then(|| vec![None; usize::from(node.ports)]));
        }
        let device = |end: Option<End>| end.and_then(|end| own[end.node]);
        for (id, (a, b, delay, frame_time)) in cables(wiring).enumerate() {
            let link = id as u32;
            for end in [a, b].into_iter().flatten() {
                check_end(wiring, id, end)?;
            }
            for (from, to, end) in [(a, b, SendingEnd::A), (b, a, SendingEnd::B)] {
                let (sender, receiver) = (device(from), device(to));
                let in_memory = local && sender.is_some();
                if let (Some(device), Some(End { port, .. }), false) = (receiver, to, in_memory) {
                    let outside = from.is_none();
                    let process = from.map_or(process, |from| hosts[from.node]);
                    let incoming = Incoming { link, end, process, outside, device, port, delay };
                    lines.incoming[incoming.index()] = Some(incoming);
                }
                let (Some(device), Some(from)) = (sender, from) else { continue };
                let to = match (receiver, to) {
                    (_, None) => Destination::Outside,
                    (Some(device), Some(End { port, .. })) if in_memory => {
                        Destination::Device { device, port }
                    }
                    (_, Some(to)) => Destination::Process(hosts[to.node]),
                };
                let outgoing = Outgoing { link, end, to, delay, frame_time };
                if lines.outgoing[device][from.port.index()].replace(outgoing).is_some() {
                    let from = wiring.end_name(from);
                    let reason = format!("link {id} ends at {from}, where another link already is");
                    return Err(LinesError(reason));
                }
            }
        }
        Ok(lines)
    }

    /// The line on which `device` sends by `port`; `None` without a cable.
    pub fn outgoing(&self, device: usize, port: PortNumber) -> Option<&Outgoing> {
        self.outgoing.get(device)?.get(port.index())?.as_ref()
    }

    /// The line of this link and sending end, if this process receives it through a socket.
    pub(crate) fn incoming(&self, link: u32, end: SendingEnd) -> Option<&Incoming> {
        self.incoming.get(line_index(link, end))?.as_ref()
    }

    /// Number of lines of the whole fabric.
    pub fn count(&self) -> usize {
        self.incoming.len()
    }

    /// Every line on which this process sends.
    pub fn all_outgoing(&self) -> impl Iterator<Item = &Outgoing> {
        self.outgoing.iter().flatten().flatten()
    }

    /// Whether an interface of the host is attached to this process.
    pub(crate) fn has_outside(&self) -> bool {
        self.all_outgoing().any(|line| line.to == Destination::Outside)
    }

    /// Every line that this process receives through a socket.
    pub(crate) fn all_incoming(&self) -> impl Iterator<Item = &Incoming> {
        self.incoming.iter().flatten()
    }
}

/// The ends of each link of the fabric and of each attached interface, its delay and its frame time.
fn cables(wiring: &Wiring) -> impl Iterator<Item = (Option<End>, Option<End>, Duration, Duration)> {
    let links = wiring.links.iter();
    let links = links.map(|link| (Some(link.a), Some(link.b), link.delay, link.frame_time));
    let attached = wiring.attached.iter();
    links.chain(attached.map(|port| (Some(port.at), None, Duration::ZERO, port.frame_time)))
}

fn check_end(wiring: &Wiring, link: usize, End { node, port }: End) -> Result<(), LinesError> {
    let exists = wiring.nodes.get(node).is_some_and(|node| port.get() <= node.ports);
    let reason = || format!("link {link} ends at port {port} of node {node}, which does not exist");
    exists.then_some(()).ok_or_else(|| LinesError(reason()))
}

#[cfg(test)]
mod tests;
