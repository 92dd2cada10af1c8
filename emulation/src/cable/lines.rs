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
    /// The shim before `frame`, the `sequence`th of run `epoch` on this line, whose last bit leaves at `stamp`.
    pub fn shim(&self, frame: &Frame, epoch: u32, sequence: u32, stamp: Instant) -> Shim {
        Shim {
            kind: frame.kind,
            flags: if frame.integrity == Integrity::Aborted { Shim::ABORTED } else { 0 },
            end: self.end,
            link: self.link,
            epoch,
            sequence,
            length: frame.octets.len() as u32,
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

/// Why a wiring cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    /// `hosts` does not match the nodes.
    #[error("{hosts} hosts are named for {nodes} nodes")]
    Hosts {
        /// Number of entries of `hosts`.
        hosts: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// A link ends at a port that does not exist.
    #[error("link {link} ends at port {port} of node {node}, which does not exist")]
    End {
        /// The link's index.
        link: usize,
        /// The node it names.
        node: usize,
        /// The port it names.
        port: PortNumber,
    },
    /// Two links share a port; one may be an attached interface.
    #[error("link {link} ends at {end}, where another link already is")]
    Taken {
        /// The later link's index.
        link: usize,
        /// The port's name.
        end: String,
    },
}

/// The index of the line of `link` on which `end` sends.
pub(crate) const fn line_index(link: u32, end: SendingEnd) -> usize {
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
    /// process by memory.
    ///
    /// # Errors
    /// If the wiring contradicts itself.
    pub fn new(
        wiring: &Wiring,
        hosts: &[usize],
        process: usize,
        local: bool,
    ) -> Result<Lines, LinesError> {
        if hosts.len() != wiring.nodes.len() {
            return Err(LinesError::Hosts { hosts: hosts.len(), nodes: wiring.nodes.len() });
        }
        let own = own_devices(hosts, process);
        let count = wiring.links.len() + wiring.attached.len();
        let mut lines = Lines { outgoing: Vec::new(), incoming: vec![None; count * 2] };
        for (node, _) in own.iter().enumerate().filter(|(_, device)| device.is_some()) {
            lines.outgoing.push(vec![None; usize::from(wiring.nodes[node].ports)]);
        }
        for (link, ends) in wiring.links.iter().enumerate() {
            check_end(wiring, link, ends.a)?;
            check_end(wiring, link, ends.b)?;
            for (from, to, end) in
                [(ends.a, ends.b, SendingEnd::A), (ends.b, ends.a, SendingEnd::B)]
            {
                let (sender, receiver) = (own[from.node], own[to.node]);
                let (link_id, delay, frame_time) = (link as u32, ends.delay, ends.frame_time);
                let in_memory = local && sender.is_some();
                if let Some(device) = receiver.filter(|_| !in_memory) {
                    let (process, port) = (hosts[from.node], to.port);
                    let outside = false;
                    let incoming =
                        Incoming { link: link_id, end, process, outside, device, port, delay };
                    lines.incoming[line_index(link_id, end)] = Some(incoming);
                }
                let Some(device) = sender else { continue };
                let to = match receiver {
                    Some(device) if in_memory => Destination::Device { device, port: to.port },
                    _ => Destination::Process(hosts[to.node]),
                };
                let slot = &mut lines.outgoing[device][from.port.index()];
                let outgoing = Outgoing { link: link_id, end, to, delay, frame_time };
                if slot.replace(outgoing).is_some() {
                    return Err(LinesError::Taken { link, end: wiring.end_name(from) });
                }
            }
        }
        lines.attach(wiring, &own, process)?;
        Ok(lines)
    }

    /// Adds attached interfaces as links behind those of the fabric: end `a` is the port, `b` is outside.
    fn attach(
        &mut self,
        wiring: &Wiring,
        own: &[Option<usize>],
        process: usize,
    ) -> Result<(), LinesError> {
        for (place, attached) in wiring.attached.iter().enumerate() {
            let link = wiring.links.len() + place;
            check_end(wiring, link, attached.at)?;
            let Some(device) = own[attached.at.node] else { continue };
            let (port, delay) = (attached.at.port, Duration::ZERO);
            let id = link as u32;
            self.incoming[line_index(id, SendingEnd::B)] = Some(Incoming {
                link: id,
                end: SendingEnd::B,
                process,
                outside: true,
                device,
                port,
                delay,
            });
            let outgoing = Outgoing {
                link: id,
                end: SendingEnd::A,
                to: Destination::Outside,
                delay,
                frame_time: attached.frame_time,
            };
            if self.outgoing[device][port.index()].replace(outgoing).is_some() {
                return Err(LinesError::Taken { link, end: wiring.end_name(attached.at) });
            }
        }
        Ok(())
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

/// By node: its index among the devices of `process`, if it is hosted there.
fn own_devices(hosts: &[usize], process: usize) -> Vec<Option<usize>> {
    let mut count = 0;
    let mut place = |host: &usize| {
        (*host == process).then(|| {
            count += 1;
            count - 1
        })
    };
    hosts.iter().map(&mut place).collect()
}

fn check_end(wiring: &Wiring, link: usize, end: End) -> Result<(), LinesError> {
    let exists = wiring.nodes.get(end.node).is_some_and(|node| end.port.get() <= node.ports);
    if exists { Ok(()) } else { Err(LinesError::End { link, node: end.node, port: end.port }) }
}

#[cfg(test)]
mod tests;
