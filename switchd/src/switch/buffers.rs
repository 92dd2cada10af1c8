//! Memory model and queues of a switch, built from its configuration.

use crate::config::{MemoryConfig, SwitchConfig};
use crate::memory::Memory;
use crate::memory::headroom::{self, MemoryError, ShortPool};
use crate::memory::ingress::{IngressPort, Room};
use crate::memory::models::{self, Model};
use crate::memory::queues::{QueueShape, Queues};
use proto::Technology;
use proto::link::credit::block_octets;
use proto::link::{LinkConfig, PauseMode};
use proto::units::{Bytes, Duration};

/// Octets that an Ethernet frame may have beyond a full data frame: two tags, IPv6 and the longest extended
/// headers.
const RARE_HEADERS: Bytes = Bytes::new(8 + 20 + 28);

/// The empty memory of a switch.
pub(super) fn memory(config: &SwitchConfig, model: &Model) -> Result<Box<dyn Memory>, MemoryError> {
    (model.make)(Room { ingress: &ingress(config), numbers: &config.memory })
}

/// The properties of all ports that a memory model needs.
pub(super) fn ingress(config: &SwitchConfig) -> Vec<IngressPort> {
    config.ports.iter().map(|port| ingress_port(&port.link, port.delay)).collect()
}

/// The least `memory.headroom` with which a switch of this configuration loses no frame of a lossless
/// priority; zero without lossless priorities or for an unknown memory model.
pub fn headroom_needed(config: &SwitchConfig) -> Bytes {
    let Some(model) = models::find(&config.memory.kind) else { return Bytes::ZERO };
    let ports = ingress(config);
    let room = Room { ingress: &ports, numbers: &config.memory };
    let lossless = ports.iter().filter(|port| port.lossless != 0);
    let needed = lossless.map(|port| (model.needed)(port, room));
    needed.max().unwrap_or_default()
}

/// The least receive buffer with which a port behind a cable of `delay` loses no frame of a lossless priority, if it
/// pauses each that holds more than `xoff`, and frames of one priority alone meet PAUSE of the whole link. Zero without
/// lossless priorities.
pub fn buffer_needed(
    link: &LinkConfig,
    delay: Duration,
    xoff: Bytes,
    numbers: &MemoryConfig,
) -> Bytes {
    let port = ingress_port(link, delay);
    let behind = headroom::behind_a_mark(&port, Room { ingress: &[], numbers });
    // A pause of a whole link stops all priorities, PFC one.
    let pauses = match link.pause().map(|pause| pause.mode) {
        Some(PauseMode::Pfc) => u64::from(port.lossless.count_ones()),
        _ => u64::from(port.lossless != 0),
    };
    (xoff + behind) * pauses
}

/// How far the headroom pool of a switch of this configuration goes; `None` if it has none, or one that serves all
/// lossless priorities of all ports at once.
pub fn short_pool(config: &SwitchConfig) -> Option<ShortPool> {
    let model = models::find(&config.memory.kind)?;
    let size = (model.headroom_pool)(&config.memory.params)?;
    let room = Room { ingress: &ingress(config), numbers: &config.memory };
    headroom::short_pool(size, room, model.needed)
}

/// The properties of a port that a memory model needs. PAUSE protects all priorities alike.
fn ingress_port(link: &LinkConfig, delay: Duration) -> IngressPort {
    let pause = link.pause();
    let lossless = pause.map_or(0, |pause| match pause.mode {
        PauseMode::None => 0,
        PauseMode::Global => u8::MAX,
        PauseMode::Pfc => pause.lossless,
    });
    IngressPort {
        buffer: link.buffer,
        // Frames arrive at the speed that the far end has, which a port without a rate of its own states for quanta.
        rate: pause.and_then(|pause| pause.quanta_rate).unwrap_or(link.rate),
        delay,
        full_frame: link.full_frame() + RARE_HEADERS,
        lossless,
    }
}

/// The empty queues of a switch with `lanes` data lanes.
pub(super) fn queues(config: &SwitchConfig, lanes: usize, technology: Technology) -> Queues {
    let full_frame = config.ports.iter().map(|port| port.link.full_frame()).max();
    Queues::new(QueueShape {
        ports: config.ports.len(),
        lanes,
        read: config.memory.read,
        full_frame: full_frame.unwrap_or_default(),
        unit: match technology {
            Technology::Infiniband => block_octets(1).get(),
            Technology::Ethernet => 1,
        },
    })
}
