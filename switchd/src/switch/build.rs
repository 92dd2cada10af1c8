//! Builds a switch from its configuration.

use super::cn_domain_edge::CnDomainEdge;
use super::error::ConfigError;
use super::{Switch, buffers};
use crate::config::{PortConfig, SwitchConfig};
use crate::egress::Egress;
use crate::egress::notification_sender::NotificationSender;
use crate::egress::service::Service;
use crate::memory::models::{self, Model};
use crate::partitions::Enforcement;
use crate::port_set::PortSet;
use crate::routing::RoutingPolicy;
use crate::routing::policies;
use crate::routing::router::Router;
use crate::service_levels::ServiceLevels;
use crate::watchdog::Watchdog;
use management::{Agents, Management, NodeKind};
use proto::Technology;
use proto::congestion::{CongestionPoint, Place, Roles};
use proto::counters::Balance;
use proto::device::Step;
use proto::events::EventLog;
use proto::frame::FramePool;
use proto::ids::{CongestionPointId, Lid, PortNumber, Priority, VirtualLane};
use proto::link::LinkConfig;
use proto::link::credit::LinkState;
use proto::link::port::LinkPort;
use proto::random::Random;
use proto::units::{Duration, Instant};

impl Switch {
    /// The switch that `config` describes.
    ///
    /// # Errors
    /// If the configuration names something that does not exist, or numbers that do not hold.
    pub fn new(mut config: SwitchConfig) -> Result<Switch, ConfigError> {
        let count = config.ports.len();
        let (technology, model) = check(&config)?;
        let scheme = config.scheme.roles()?;
        let ethernet = technology == Technology::Ethernet;
        let sl2vl = match technology {
            Technology::Infiniband => ServiceLevels::new(&config.sl2vl, count),
            Technology::Ethernet => Some(ServiceLevels::identity(count)),
        };
        let sl2vl = sl2vl.ok_or(ConfigError::ServiceLevels)?;
        let mut ports: Vec<LinkPort> = (0..count)
            .map(|index| {
                let number = PortNumber::from_index(index);
                LinkPort::new(number, &config.ports[index].link, Instant::ZERO)
            })
            .collect();
        if config.management.is_some() {
            config =
                SwitchConfig { lid: Lid::default(), routes: vec![], multicast: vec![], ..config };
            ports.iter_mut().for_each(|port| port.permit(LinkState::Initialize, Instant::ZERO));
        }
        let lanes = usize::from(ports.iter().map(LinkPort::data_lanes).max().unwrap_or(1));
        let mut dirty = PortSet::EMPTY;
        ports.iter().for_each(|port| dirty.insert(port.number()));
        Ok(Switch {
            lid: config.lid,
            egress: ports.iter().map(|port| output(&config, &*scheme, port, technology)).collect(),
            edges: config.ports.iter().filter(|_| ethernet).map(CnDomainEdge::new).collect(),
            due: vec![Instant::NEVER; count],
            next_due: Instant::NEVER,
            queues: buffers::queues(&config, lanes, technology),
            memory: if ethernet { Some(buffers::memory(&config, model)?) } else { None },
            routing: Router::new(&config, policy(&config, &*scheme, technology)?, technology),
            managed: agents(&config, &sl2vl),
            shut: if config.management.is_some() { dirty } else { PortSet::EMPTY },
            enforcement: Enforcement::none(count),
            sl2vl,
            watchdog: config.watchdog.map(|numbers| Watchdog::new(numbers, count, lanes)),
            ports,
            pool: FramePool::default(),
            log: EventLog::default(),
            dirty,
            groups: Vec::new(),
            copies: Vec::new(),
            balance: Balance::default(),
            step: Step::default(),
            blueprint: Box::new(SwitchConfig { routes: vec![], multicast: vec![], ..config }),
        })
    }
}

/// Checks a configuration without building anything.
fn check(config: &SwitchConfig) -> Result<(Technology, &'static Model), ConfigError> {
    let count = config.ports.len();
    if !(1..=254).contains(&count) {
        return Err(ConfigError::Ports(count));
    }
    let technology = config.ports[0].link.technology();
    let differs = |port: &PortConfig| port.link.technology() != technology;
    if let Some(index) = config.ports.iter().position(differs) {
        return Err(ConfigError::Technology(PortNumber::from_index(index)));
    }
    let routed = config.routes.iter().map(|route| route.port);
    let grouped = config.multicast.iter().flat_map(|group| group.ports.iter().copied());
    let paired = config.routing.pairs.iter().map(|pair| pair.port);
    if let Some(port) = routed.chain(grouped).chain(paired).find(|port| port.index() >= count) {
        return Err(ConfigError::Port(port));
    }
    let pauses = technology == Technology::Ethernet;
    if pauses && config.management.is_some() {
        return Err(ConfigError::Management);
    }
    if config.watchdog.is_some_and(|watchdog| !pauses || watchdog.poll == Duration::ZERO) {
        return Err(ConfigError::Watchdog);
    }
    models::find(&config.memory.kind)
        .filter(|model| model.technologies.contains(&technology))
        .map(|model| (technology, model))
        .ok_or_else(|| ConfigError::Memory(config.memory.kind.clone()))
}

impl SwitchConfig {
    /// Checks everything without building the switch.
    ///
    /// # Errors
    /// The first error found.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (technology, model) = check(self)?;
        policy(self, &*self.scheme.roles()?, technology)?;
        if technology == Technology::Ethernet {
            buffers::memory(self, model)?;
        }
        Ok(())
    }
}

/// The agents of a switch under a subnet manager. Its lanes begin as the scenario sets them.
fn agents(config: &SwitchConfig, sl2vl: &ServiceLevels) -> Option<Box<Management>> {
    let links: Vec<&LinkConfig> = config.ports.iter().map(|port| &port.link).collect();
    let management = config.management.as_ref()?;
    let mut agents = Agents::new(NodeKind::Switch, &config.name, management, &links);
    agents.preset_lanes(|input, output, level| {
        let pair = PortNumber::new(input).and_then(|input| Ok((input, PortNumber::new(output)?)));
        pair.map_or(VirtualLane::ZERO, |(input, output)| sl2vl.lane(input, output, level))
    });
    Some(Box::new(Management::new(agents)))
}

fn policy(
    config: &SwitchConfig,
    scheme: &dyn Roles,
    technology: Technology,
) -> Result<Box<dyn RoutingPolicy>, ConfigError> {
    let kind = config.routing.kind.as_deref();
    let unknown = || ConfigError::Routing(kind.unwrap_or_default().to_owned());
    let policy = policies::find(kind, technology).ok_or_else(unknown)?;
    Ok((policy.make)(config, scheme)?)
}

/// The CPID of the congestion point of a port and priority; `None` on InfiniBand.
fn congestion_point(link: &LinkConfig, lane: u8) -> Option<CongestionPointId> {
    CongestionPointId::of_port(link.pause()?.address.number(), Priority::new(lane).ok()?)
}

fn output(
    config: &SwitchConfig,
    scheme: &dyn Roles,
    port: &LinkPort,
    technology: Technology,
) -> Egress {
    let described = &config.ports[port.number().index()];
    let egress = Egress::new(points(config, scheme, port), config.ports.len(), technology);
    let sender = NotificationSender::new(&described.link, &described.domain);
    egress.with_sender(sender).with_service(Service::new(&described.service))
}

/// The congestion points of a port, by lane.
pub(super) fn points(
    config: &SwitchConfig,
    scheme: &dyn Roles,
    port: &LinkPort,
) -> Vec<Box<dyn CongestionPoint>> {
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
    points.collect()
}
