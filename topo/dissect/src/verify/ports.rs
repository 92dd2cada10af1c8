//! The port and direction of a frame, as a small key for tables.

use capture::reader::CapturedFrame;
use proto::events::Direction;
use std::collections::HashMap;
use std::sync::Arc;

/// Suffix of the interface with a port's link packets.
const LINK: &str = "/link";
/// Suffix before that one if a replay fed frames to the port (crate `capture`).
const FED: &str = "/fed";

/// A port and a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the port in [`Ports`].
    pub port: u32,
    /// Sent or received; `None` if the file does not state it.
    pub direction: Option<Direction>,
}

/// What is known of one port.
#[derive(Clone, Debug, Default)]
struct Port {
    name: Arc<str>,
    /// Damaged frames by direction: unknown, sent, received.
    damaged: [u64; 3],
}

/// The ports of a file: at most as many as interfaces, which the reader bounds.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    by_interface: HashMap<Option<Arc<str>>, u32>,
    by_name: HashMap<Arc<str>, u32>,
    ports: Vec<Port>,
}

impl Ports {
    /// The place of `frame`. The interfaces of a port for packets and for link packets are one port.
    pub fn place(&mut self, frame: &CapturedFrame) -> Place {
        let port = match self.by_interface.get(&frame.interface) {
            Some(port) => *port,
            None => self.register(&frame.interface),
        };
        Place { port, direction: frame.direction }
    }

    fn register(&mut self, interface: &Option<Arc<str>>) -> u32 {
        let name = interface.as_deref().unwrap_or("-");
        let base = name.strip_suffix(LINK).unwrap_or(name);
        let base = base.strip_suffix(FED).unwrap_or(base);
        let next = self.ports.len() as u32;
        let port = *self.by_name.entry(base.into()).or_insert(next);
        if port == next {
            self.ports.push(Port { name: base.into(), ..Port::default() });
        }
        self.by_interface.insert(interface.clone(), port);
        port
    }

    /// True if a replay that feeds frames to the port named the interface.
    pub fn is_fed(interface: Option<&str>) -> bool {
        interface.and_then(|name| name.strip_suffix(LINK)).is_some_and(|name| name.ends_with(FED))
    }

    /// The port's name, "-" if the file names no interface.
    pub fn name(&self, place: Place) -> &str {
        self.ports.get(place.port as usize).map_or("-", |port| &port.name)
    }

    /// Damaged frames at `place` so far.
    pub fn damaged(&self, place: Place) -> u64 {
        self.ports[place.port as usize].damaged[index(place.direction)]
    }

    /// Counts a damaged frame at `place`.
    pub fn count_damaged(&mut self, place: Place) {
        self.ports[place.port as usize].damaged[index(place.direction)] += 1;
    }
}

/// Index of a direction: unknown, sent, received.
const fn index(direction: Option<Direction>) -> usize {
    match direction {
        None => 0,
        Some(Direction::Tx) => 1,
        Some(Direction::Rx) => 2,
    }
}
