//! From a configuration to a switch, or to what is wrong with it.

use super::Switch;
use super::domain::Border;
use crate::config::{PortConfig, SwitchConfig};
use crate::egress::Egress;
use crate::egress::marking::Dialect;
use crate::egress::notify::Herald;
use crate::egress::service::Service;
use crate::memory::Memory;
use crate::memory::headroom::MemoryError;
use crate::memory::models::{self, Inlet, Model, Room};
use crate::memory::queues::{QueueShape, Queues};
use crate::port_set::PortSet;
use crate::routing::RoutingPolicy;
use crate::routing::policies;
use crate::routing::router::Router;
use crate::service_levels::ServiceLevels;
use crate::watchdog::Watchdog;
use proto::congestion::{Place, Roles, SchemeError};
use proto::counters::Balance;
use proto::events::EventLog;
use proto::frame::FramePool;
use proto::ids::{CongestionPointId, PortNumber, Priority};
use proto::link::credit::block_octets;
use proto::link::port::LinkPort;
use proto::link::{LinkConfig, LinkControl, PauseMode};
use proto::params::ParamError;
use proto::random::Random;
use proto::technology::Technology;
use proto::units::{Bytes, Duration, Instant};

/// What a frame of Ethernet may have beyond a full one: two tags, IPv6, and the longest extended headers.
const RARE_HEADERS: Bytes = Bytes::new(8 + 20 + 28);

/// Why a switch cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No memory model of that name, or none for this technology.
    #[error("unknown memory model {0:?}")]
    Memory(String),
    /// The memory model's numbers do not hold.
    #[error(transparent)]
    Room(#[from] MemoryError),
    /// No routing policy of that name, or none for this technology.
    #[error("unknown routing policy {0:?}")]
    Routing(String),
    /// The routing policy refuses a parameter.
    #[error("routing: {0}")]
    Policy(#[from] ParamError),
    /// The congestion control scheme is unknown, or refuses a parameter.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The service level map needs sixteen entries of at most 15, or sixteen for each pair of ports.
    #[error(
        "the service level map needs sixteen lanes from 0 to 15, for all or for each pair of ports"
    )]
    ServiceLevels,
    /// A port number beyond the last port.
    #[error("a route leads out of port {0}, which the switch does not have")]
    Port(PortNumber),
    /// A switch has 1 to 254 ports.
    #[error("a switch has 1 to 254 ports, not {0}")]
    Ports(usize),
    /// Frames of one technology cannot leave by a port of the other.
    #[error("port {0} is of another technology than port 1")]
    Technology(PortNumber),
    /// A watchdog watches pauses, and looks now and then.
    #[error("a watchdog needs links that can be paused, and a poll above 0")]
    Watchdog,
}

impl Switch {
    /// The switch that `config` describes.
    ///
    /// # Errors
    /// If the configuration names something that does not exist, or numbers that do not hold.
    pub fn new(config: SwitchConfig) -> Result<Switch, ConfigError> {
        let count = config.ports.len();
        let (dialect, model) = check(&config)?;
        let scheme = config.scheme.roles()?;
        let ethernet = dialect == Dialect::Ethernet;
        let sl2vl = match dialect {
            Dialect::Infiniband => ServiceLevels::new(&config.sl2vl, count),
            Dialect::Ethernet => Some(ServiceLevels::identity(count)),
        };
        let ports: Vec<LinkPort> = (0..count)
            .map(|index| {
                let number = PortNumber::from_index(index);
                LinkPort::new(number, &config.ports[index].link, Instant::ZERO)
            })
            .collect();
        let lanes = usize::from(ports.iter().map(LinkPort::data_lanes).max().unwrap_or(1));
        let mut stirred = PortSet::EMPTY;
        ports.iter().for_each(|port| stirred.insert(port.number()));
        Ok(Switch {
            lid: config.lid,
            egress: ports.iter().map(|port| output(&config, &*scheme, port, dialect)).collect(),
            borders: config.ports.iter().filter(|_| ethernet).map(Border::new).collect(),
            due: vec![Instant::NEVER; count],
            next_due: Instant::NEVER,
            queues: queues(&config, lanes, dialect),
            memory: if ethernet { Some(memory(&config, model)?) } else { None },
            routing: Router::new(&config, policy(&config, &*scheme, dialect)?, ethernet),
            sl2vl: sl2vl.ok_or(ConfigError::ServiceLevels)?,
            watchdog: config.watchdog.map(|numbers| Watchdog::new(numbers, count, lanes)),
            ports,
            pool: FramePool::default(),
            log: EventLog::default(),
            stirred,
            groups: Vec::new(),
            balance: Balance::default(),
        })
    }
}

/// What can be told without making anything.
fn check(config: &SwitchConfig) -> Result<(Dialect, &'static Model), ConfigError> {
    let count = config.ports.len();
    if !(1..=254).contains(&count) {
        return Err(ConfigError::Ports(count));
    }
    let dialects: Vec<Dialect> = config.ports.iter().map(|port| dialect(&port.link)).collect();
    let dialect = dialects[0];
    if let Some(index) = dialects.iter().position(|other| *other != dialect) {
        return Err(ConfigError::Technology(PortNumber::from_index(index)));
    }
    let routed = config.routes.iter().map(|route| route.port);
    let grouped = config.multicast.iter().flat_map(|group| group.ports.iter().copied());
    let paired = config.routing.pairs.iter().map(|pair| pair.port);
    if let Some(port) = routed.chain(grouped).chain(paired).find(|port| port.index() >= count) {
        return Err(ConfigError::Port(port));
    }
    let pauses = dialect == Dialect::Ethernet;
    if config.watchdog.is_some_and(|watchdog| !pauses || watchdog.poll == Duration::ZERO) {
        return Err(ConfigError::Watchdog);
    }
    models::find(&config.memory.kind)
        .filter(|model| model.technologies.contains(&technology(dialect)))
        .map(|model| (dialect, model))
        .ok_or_else(|| ConfigError::Memory(config.memory.kind.clone()))
}

impl SwitchConfig {
    /// Checks everything without building the switch.
    ///
    /// # Errors
    /// The first error found.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (dialect, model) = check(self)?;
        policy(self, &*self.scheme.roles()?, dialect)?;
        if dialect == Dialect::Ethernet {
            memory(self, model)?;
        }
        Ok(())
    }
}

fn technology(dialect: Dialect) -> Technology {
    match dialect {
        Dialect::Infiniband => Technology::Infiniband,
        Dialect::Ethernet => Technology::Ethernet,
    }
}

fn policy(
    config: &SwitchConfig,
    scheme: &dyn Roles,
    dialect: Dialect,
) -> Result<Box<dyn RoutingPolicy>, ConfigError> {
    let kind = config.routing.kind.as_deref();
    let unknown = || ConfigError::Routing(kind.unwrap_or_default().to_owned());
    let policy = policies::find(kind, technology(dialect)).ok_or_else(unknown)?;
    Ok((policy.make)(config, scheme)?)
}

/// The account of room.
fn memory(config: &SwitchConfig, model: &Model) -> Result<Box<dyn Memory>, MemoryError> {
    let inlets: Vec<Inlet> = config.ports.iter().map(inlet).collect();
    (model.make)(Room { inlets: &inlets, numbers: &config.memory })
}

/// The least `memory.headroom` with which a switch of this configuration loses nothing that it must
/// not lose; nothing where there is no such model or nothing is lossless.
pub fn headroom_needed(config: &SwitchConfig) -> Bytes {
    let Some(model) = models::find(&config.memory.kind) else { return Bytes::ZERO };
    let lossless = config.ports.iter().map(inlet).filter(|inlet| inlet.lossless != 0);
    let needed = lossless.map(|inlet| (model.needed)(&inlet, config.memory.jitter));
    needed.max().unwrap_or_default()
}

/// What a link's frames look like, and with that what may be written into them.
fn dialect(link: &LinkConfig) -> Dialect {
    match link.control {
        LinkControl::Credits(_) => Dialect::Infiniband,
        LinkControl::Pause(_) => Dialect::Ethernet,
    }
}

/// A port as memory sees it. PAUSE knows no priorities: what it protects, it protects in all of them.
fn inlet(port: &PortConfig) -> Inlet {
    let lossless = match &port.link.control {
        LinkControl::Credits(_) => 0,
        LinkControl::Pause(pause) => match pause.mode {
            PauseMode::None => 0,
            PauseMode::Global => u8::MAX,
            PauseMode::Pfc => pause.lossless,
        },
    };
    Inlet {
        buffer: port.link.buffer,
        rate: port.link.rate,
        delay: port.delay,
        full_frame: port.link.full_frame() + RARE_HEADERS,
        lossless,
    }
}

fn queues(config: &SwitchConfig, lanes: usize, dialect: Dialect) -> Queues {
    let full_frame = config.ports.iter().map(|port| port.link.full_frame()).max();
    Queues::new(QueueShape {
        ports: config.ports.len(),
        lanes,
        read: config.memory.read,
        full_frame: full_frame.unwrap_or_default(),
        unit: match dialect {
            Dialect::Infiniband => block_octets(1).get(),
            Dialect::Ethernet => 1,
        },
    })
}

/// What the congestion point of a port and priority calls itself. InfiniBand knows no such name.
fn congestion_point(link: &LinkConfig, lane: u8) -> Option<CongestionPointId> {
    match &link.control {
        LinkControl::Credits(_) => None,
        LinkControl::Pause(pause) => {
            CongestionPointId::of_port(pause.address.number(), Priority::new(lane).ok()?)
        }
    }
}

fn output(config: &SwitchConfig, scheme: &dyn Roles, port: &LinkPort, dialect: Dialect) -> Egress {
    let number = port.number();
    let described = &config.ports[number.index()];
    let points = (0..port.data_lanes()).map(|lane| {
        let purpose = format_args!("congestion point {number}/{lane}");
        scheme.congestion_point(Place {
            line_rate: described.link.rate,
            full_frame: described.link.full_frame(),
            buffer: port.lane_buffer(),
            port: number,
            faces_adapter: described.faces_adapter,
            congestion_point: congestion_point(&described.link, lane),
            random: Random::stream(config.seed, &config.name, purpose),
        })
    });
    let egress = Egress::new(points.collect(), config.ports.len(), dialect);
    let herald = Herald::new(&described.link, &described.domain);
    egress.with_herald(herald).with_service(Service::new(&described.service))
}
