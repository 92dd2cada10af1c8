//! Which port and direction a frame was seen at, as a small number that tables can be keyed with.

use capture::reader::CapturedFrame;
use proto::events::Direction;
use std::collections::HashMap;
use std::sync::Arc;

/// The interface of a port's link packets is named after the port, with this behind it.
const LINK: &str = "/link";
/// And this before it, if a replay fed frames to the port (`capture`).
const FED: &str = "/fed";

/// A port and a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which port, by the number [`Ports`] gave it.
    pub port: u32,
    /// Sent or received; `None` if the file does not tell.
    pub direction: Option<Direction>,
}

/// What is known of one port.
#[derive(Clone, Debug, Default)]
struct Port {
    name: Arc<str>,
    /// Frames by direction of which nothing can be believed: unknown, sent, received.
    damaged: [u64; 3],
}

/// The ports of a file. There are as many as interfaces, which the reader bounds.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    by_interface: HashMap<Option<Arc<str>>, u32>,
    by_name: HashMap<Arc<str>, u32>,
    ports: Vec<Port>,
}

impl Ports {
    /// Where `frame` was seen. Both interfaces of a port, packets and link packets, are one port.
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

    /// The interface was named by a replay that feeds frames to its port.
    pub fn is_fed(interface: Option<&str>) -> bool {
        interface.and_then(|name| name.strip_suffix(LINK)).is_some_and(|name| name.ends_with(FED))
    }

    /// The port's name, "-" if the file names no interface.
    pub fn name(&self, place: Place) -> &str {
        self.ports.get(place.port as usize).map_or("-", |port| &port.name)
    }

    /// Frames at `place` so far of which nothing could be believed.
    pub fn damaged(&self, place: Place) -> u64 {
        self.ports[place.port as usize].damaged[index(place.direction)]
    }

    /// Counts another one.
    pub fn count_damaged(&mut self, place: Place) {
        self.ports[place.port as usize].damaged[index(place.direction)] += 1;
    }
}

/// Unknown, sent, received.
const fn index(direction: Option<Direction>) -> usize {
    match direction {
        None => 0,
        Some(Direction::Tx) => 1,
        Some(Direction::Rx) => 2,
    }
}
