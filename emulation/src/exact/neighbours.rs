//! The neighbours of a process: the processes at the far ends of its cables, with one channel to each.

use super::channel::Channel;
use super::sending::Identity;
use crate::cable::lines::{Destination, Incoming, Lines};
use crate::wiring::{End, Wiring};
use proto::units::{Duration, Instant};
use std::collections::BTreeSet;
use std::io;

/// The width of the windows in which all processes run: the shortest delay of a cable, but for those without any.
pub(super) fn window(wiring: &Wiring) -> Duration {
    let delays = wiring.links.iter().map(|link| link.delay);
    let shortest = delays.filter(|delay| *delay > Duration::ZERO).min();
    shortest.unwrap_or(Duration::from_ps(1))
}

/// Whether `process` has one neighbour, beside itself.
pub(super) fn is_leaf(process: usize, lines: &Lines) -> bool {
    let peers = lines.all_incoming().map(|line| line.process);
    peers.filter(|peer| *peer != process).collect::<BTreeSet<usize>>().len() == 1
}

/// One channel for each neighbour, and one for the process itself if it has cables to itself, in the order of processes.
///
/// # Errors
/// If a far end gives no promises, or a cable has no delay.
pub(super) fn channels(
    identity: Identity,
    lines: &Lines,
    wiring: &Wiring,
) -> io::Result<Vec<Channel>> {
    let name = |link: u32| {
        let end = |end: End| wiring.end_name(end);
        let link = wiring.links.get(link as usize);
        link.map_or_else(String::new, |link| format!("{} – {}", end(link.a), end(link.b)))
    };
    let mut channels: Vec<Channel> = Vec::new();
    let mut of = |peer: usize, link: u32| {
        let place = channels.iter().position(|channel| channel.peer == peer);
        place.unwrap_or_else(|| {
            channels.push(Channel::new(identity, peer, name(link)));
            channels.len() - 1
        })
    };
    let incoming: Vec<(usize, Incoming)> =
        lines.all_incoming().map(|line| (of(line.process, line.link), *line)).collect();
    let mut outgoing = Vec::new();
    for line in lines.all_outgoing().filter(|line| line.is_by_socket()) {
        let Destination::Process(peer) = line.to else {
            return Err(io::Error::other("a port is attached: its far end gives no promises"));
        };
        outgoing.push((of(peer, line.link), *line));
    }
    for (place, line) in incoming {
        if line.delay == Duration::ZERO {
            let what =
                format!("cable {} has no delay, so nothing can be promised", name(line.link));
            return Err(io::Error::other(what));
        }
        channels[place].add_incoming(&line);
    }
    outgoing.iter().for_each(|(place, line)| channels[*place].sending.add(line));
    channels.sort_by_key(|channel| channel.peer);
    Ok(channels)
}

/// When the next frame of any neighbour but one arrives at the earliest.
pub(super) struct Bounds {
    first: Instant,
    /// The place of the channel with the first bound.
    place: usize,
    /// The first bound of all others.
    second: Instant,
}

impl Bounds {
    /// Those of `channels`, without that of the process to itself.
    pub fn of(channels: &[Channel]) -> Bounds {
        let none = Bounds { first: Instant::NEVER, place: usize::MAX, second: Instant::NEVER };
        let others = channels.iter().enumerate().filter(|(_, channel)| !channel.is_own());
        others.fold(none, |bounds, (place, channel)| {
            let bound = channel.bound();
            if bound < bounds.first {
                Bounds { first: bound, place, second: bounds.first }
            } else {
                Bounds { second: bounds.second.min(bound), ..bounds }
            }
        })
    }

    /// The earliest of all channels but that at `place`.
    pub fn without(&self, place: usize) -> Instant {
        if place == self.place { self.second } else { self.first }
    }
}
