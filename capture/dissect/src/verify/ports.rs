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

/// The ports of a file: at most as many as interfaces, which the reader bounds.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    by_name: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    /// Damaged frames at each place.
    damaged: HashMap<Place, u64>,
}

impl Ports {
    /// The place of `frame`. The interfaces of a port for packets and for link packets are one port.
    pub fn place(&mut self, frame: &CapturedFrame) -> Place {
        let name = frame.interface.as_deref().unwrap_or("-");
        let name = name.strip_suffix(LINK).unwrap_or(name);
        let name = name.strip_suffix(FED).unwrap_or(name);
        let port = self.by_name.get(name).copied().unwrap_or_else(|| {
            let name: Arc<str> = name.into();
            self.names.push(Arc::clone(&name));
            let port = self.by_name.len() as u32;
            self.by_name.insert(name, port);
            port
        });
        Place { port, direction: frame.direction }
    }

    /// True if a replay that feeds frames to the port named the interface.
    pub fn is_fed(interface: Option<&str>) -> bool {
        interface.and_then(|name| name.strip_suffix(LINK)).is_some_and(|name| name.ends_with(FED))
    }

    /// The port's name, "-" if the file names no interface.
    pub fn name(&self, place: Place) -> &str {
        &self.names[place.port as usize]
    }

    /// Damaged frames at `place` so far.
    pub fn damaged(&self, place: Place) -> u64 {
        self.damaged.get(&place).copied().unwrap_or(0)
    }

    /// Counts a damaged frame at `place`.
    pub fn count_damaged(&mut self, place: Place) {
        *self.damaged.entry(place).or_default() += 1;
    }
}
