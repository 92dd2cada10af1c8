//! Validation of a NIC's configuration.

use crate::config::{
    Arrivals, ClassConfig, DrainConfig, Encapsulation, MTU_MAX, NicConfig, Operation, RemoteConfig,
    ResequenceConfig, RoceConfig, StepConfig, Target, TrafficConfig, Transport,
};
use proto::congestion::{Roles, SchemeError};
use proto::frame::ethernet_size;
use proto::ids::Lid;
use proto::link::{FlowControlConfig, PauseConfig, PauseMode};
use proto::units::{Bytes, Duration};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::EthernetHeader;
use std::fmt::Display;
use std::sync::Arc;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It violates a rule: the field, class or traffic item, and what is permitted.
    #[error("{0}")]
    Rule(String),
    /// The congestion control scheme is unknown, or refuses a parameter.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
}

/// Refuses a configuration for which `rule` does not hold.
fn require(holds: bool, rule: impl Display) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError::Rule(rule.to_string())) }
}

/// Refuses a field, or the length of a list, that is not `allowed`.
fn field(name: &str, value: u64, holds: bool, allowed: &str) -> Result<(), ConfigError> {
    require(holds, format_args!("{name} is {value}: {allowed}"))
}

/// The largest message. Source: IBTA Vol 1, 9.7.7 (2^31 octets).
const MESSAGE_MAX: Bytes = Bytes::new(1 << 31);
/// Octets of a test frame that the MTU does not count: Ethernet header and FCS. Source: IEEE 802.3, 3.2.
const TEST_FRAME_OVERHEAD: u64 = EthernetHeader::LEN as u64 + 4;
/// A planned queue pair number has eight bits for the class, and the value 0 is reserved.
const CLASSES_MAX: usize = 255;
/// The plan numbers groups as multicast LIDs. Source: IBTA Vol 1, 4.1.3.
pub(crate) const GROUP_FIRST: u16 = 0xc000;
const GROUPS_MAX: usize = 256;
/// Each service has memory of its own.
const SERVICES_MAX: usize = 16;

impl NicConfig {
    /// Validates the whole configuration and parses the scheme's parameters.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<Arc<dyn Roles>, ConfigError> {
        self.check_numbers()?;
        match (&self.wire, &self.link.control) {
            (Encapsulation::Infiniband, FlowControlConfig::Credit(_)) => {}
            (Encapsulation::Roce(roce), FlowControlConfig::Pause(pause)) => {
                self.check_roce(roce, pause)?
            }
            _ => return Err(ConfigError::Rule(TECHNOLOGY.to_owned())),
        }
        if self.management.is_some() && self.wire.roce().is_some() {
            return Err(ConfigError::Rule(
                "a subnet manager needs a link of InfiniBand".to_owned(),
            ));
        }
        self.check_host()?;
        self.check_groups()?;
        let adapters = self.check_adapters()?;
        for (index, class) in self.classes.iter().enumerate() {
            let place = |rule| ConfigError::Rule(format!("class {index}: {rule}"));
            self.check_class(class).map_err(place)?;
        }
        for item in &self.traffic {
            let place = |rule| ConfigError::Rule(format!("traffic {:?}: {rule}", item.name));
            self.check_traffic(item, &adapters).map_err(place)?;
        }
        Ok(self.scheme.roles()?)
    }

    fn check_host(&self) -> Result<(), ConfigError> {
        let Some(host) = &self.host else { return Ok(()) };
        require(self.wire.roce().is_some(), "a host needs an Ethernet link")?;
        let serves = host.serve.len();
        field("host.serve", serves as u64, serves <= SERVICES_MAX, "at most 16 services")?;
        let mut ports: Vec<u16> = host.serve.iter().map(|service| service.port).collect();
        ports.sort_unstable();
        require(!ports.contains(&0), "the port of a service is not 0")?;
        require(ports.windows(2).all(|pair| pair[0] != pair[1]), "each service has its own port")?;
        for RemoteConfig { lid, mtu, .. } in &host.remotes {
            let is_mtu = (256..=4096).contains(&mtu.get()) && mtu.get().is_power_of_two();
            let rule = "the path MTU of a foreign host is a power of two up to the link's MTU";
            require(is_mtu && *mtu <= self.link.mtu, rule)?;
            let rule = "the number of a foreign host is unicast, and that of no adapter";
            require(lid.is_unicast() && !self.adapters.contains(lid), rule)?;
        }
        Ok(())
    }

    fn check_groups(&self) -> Result<(), ConfigError> {
        let is_managed = self.groups.is_empty() || self.management.is_some();
        require(is_managed, "multicast groups need a subnet manager")?;
        let numbers = GROUP_FIRST..GROUP_FIRST + GROUPS_MAX as u16;
        for (index, group) in self.groups.iter().enumerate() {
            let place = |rule| format!("group {:?}: {rule}", group.name);
            let is_new = self.groups[..index].iter().all(|other| other.lid != group.lid);
            let has_number = is_new && numbers.contains(&group.lid.get());
            require(has_number, place("its LID is one of 256 from 0xc000, each once"))?;
            require(group.mgid.is_multicast(), place("its MGID begins with ff"))?;
        }
        Ok(())
    }

    /// The numbers of foreign hosts.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = Lid> {
        self.host.iter().flat_map(|host| &host.remotes).map(|remote| remote.lid)
    }

    fn check_class(&self, class: &ClassConfig) -> Result<(), ConfigError> {
        let is_infiniband = self.wire == Encapsulation::Infiniband;
        let is_test = class.transport == Transport::Test;
        let writes = class.operation == Operation::Write;
        let lane = self.sl2vl[class.service_level.index()];
        let (is_ud, has_lane) = (class.transport == Transport::Ud, lane < self.link.data_lanes());
        require(!is_infiniband || has_lane, "its service level has no operational data lane")?;
        require(!(is_ud && writes), "a UD message cannot be an RDMA WRITE")?;
        require(!(is_test && writes), "a test frame cannot be an RDMA WRITE")?;
        let rule = "test frames need an Ethernet link with priorities by PCP";
        require(!is_test || self.has_pcp(), rule)
    }

    /// The permitted sizes of a test frame on this link, in octets from DA to FCS.
    fn test_frame_sizes(&self) -> std::ops::RangeInclusive<u64> {
        ethernet_size(0).get()..=self.link.mtu.get() + TEST_FRAME_OVERHEAD
    }

    /// Whether the link takes the priority from the PCP. A test frame has no IP header with a DSCP.
    fn has_pcp(&self) -> bool {
        match &self.link.control {
            FlowControlConfig::Pause(pause) => matches!(pause.priorities, PriorityMap::Pcp { .. }),
            FlowControlConfig::Credit(_) => false,
        }
    }

    fn check_numbers(&self) -> Result<(), ConfigError> {
        let (mtu, lanes) = (self.link.mtu.get(), self.link.data_lanes());
        let (levels, classes, traffic) = (self.sl2vl.len(), self.classes.len(), self.traffic.len());
        field("retry_count", self.retry_count.into(), self.retry_count <= 7, "0 to 7")?;
        if let Some(ResequenceConfig { window, .. }) = self.wire.resequence() {
            let holds = (2..=1 << 16).contains(&window);
            field("resequence.window", window.into(), holds, "2 to 65536")?;
        }
        field("rnr_retry", self.rnr_retry.into(), self.rnr_retry <= 7, "0 to 7")?;
        field("sl2vl", levels as u64, levels == 16, "sixteen entries")?;
        field("data_lanes", lanes.into(), (1..=15).contains(&lanes), "1 to 15")?;
        let fits = (256..=MTU_MAX as u64).contains(&mtu) && mtu.is_multiple_of(4);
        field("mtu", mtu, fits, "256 to 4096, a multiple of 4")?;
        field("classes", classes as u64, classes <= CLASSES_MAX, "at most 255")?;
        field("traffic", traffic as u64, traffic < usize::from(u16::MAX), "at most 65534 items")
    }

    fn check_roce(&self, roce: &RoceConfig, pause: &PauseConfig) -> Result<(), ConfigError> {
        let levels = roce.dscp.len();
        field("dscp", levels as u64, levels == 16, "sixteen entries")?;
        let storm = roce.storm.map_or(0, |storm| storm.priorities);
        let holds = pause.mode != PauseMode::Pfc || storm & !pause.lossless == 0;
        field("storm.priorities", storm.into(), holds, "lossless priorities of the link")?;
        let Some(DrainConfig { xoff, xon, .. }) = roce.drain else { return Ok(()) };
        field("xon", xon.get(), xon <= xoff, "at most xoff")?;
        field("xoff", xoff.get(), xoff < self.link.buffer, "below the link's buffer")
    }

    /// Returns the list of adapters, sorted. LIDs from 0xC000 are multicast. Source: IBTA Vol 1, 4.1.3.
    fn check_adapters(&self) -> Result<Vec<Lid>, ConfigError> {
        for lid in self.adapters.iter().chain([&self.lid]) {
            require(lid.is_unicast(), format_args!("LID {lid} is not a unicast address"))?;
        }
        let mut sorted = self.adapters.clone();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let absent = Some(self.lid).filter(|lid| sorted.binary_search(lid).is_err());
        match twice.or(absent) {
            None => Ok(sorted),
            Some(lid) => Err(ConfigError::Rule(format!(
                "LID {lid} must be in the list of adapters exactly once"
            ))),
        }
    }

    fn check_script(
        &self,
        steps: &[StepConfig],
        is_test: bool,
        is_peer: impl Fn(&Lid) -> bool,
    ) -> Result<(), ConfigError> {
        let fits = |size: Bytes| match is_test {
            true => self.test_frame_sizes().contains(&size.get()),
            false => (1..=MESSAGE_MAX.get()).contains(&size.get()),
        };
        let has_size = |step: &StepConfig| step.messages > 0 && fits(step.size) && fits(step.last);
        require(steps.iter().all(|step| is_peer(&step.to)), NOT_A_PEER)?;
        let rule = "a step has at least one message, of a size that its transport carries";
        require(steps.iter().all(has_size), rule)
    }

    fn check_traffic(&self, item: &TrafficConfig, adapters: &[Lid]) -> Result<(), ConfigError> {
        let class = self.classes.get(usize::from(item.class));
        require(class.is_some(), "its class does not exist")?;
        let transport = class.map(|class| class.transport);
        let (is_test, is_ud) =
            (transport == Some(Transport::Test), transport == Some(Transport::Ud));
        require(item.size <= MESSAGE_MAX, "a message has at most 2 GiB")?;
        require(!is_ud || item.size <= self.link.mtu, "a UD message has at most one MTU")?;
        let rule = "a test frame has at least 64 octets and at most one MTU of payload";
        require(!is_test || self.test_frame_sizes().contains(&item.size.get()), rule)?;
        let remote =
            |lid: &Lid| transport == Some(Transport::Rc) && self.remotes().any(|r| r == *lid);
        let group = |lid: &Lid| is_ud && self.groups.iter().any(|group| group.lid == *lid);
        let is_peer = |lid: &Lid| {
            *lid != self.lid && (adapters.binary_search(lid).is_ok() || remote(lid) || group(lid))
        };
        match &item.to {
            Target::Uniform => require(self.adapters.len() >= 2, NO_RECEIVER)?,
            Target::Lids(lids) => {
                require(!lids.is_empty(), NO_RECEIVER)?;
                require(lids.iter().all(is_peer), NOT_A_PEER)?;
            }
            Target::Script(steps) => return self.check_script(steps, is_test, is_peer),
        }
        let has_interval = matches!(item.arrivals, Arrivals::Poisson | Arrivals::Paced);
        let has_slot = item.arrivals == Arrivals::Bernoulli;
        let (interval, slot, zero) = (item.interval, item.slot, Duration::ZERO);
        require(!has_interval || interval != zero, "its interval must be above zero")?;
        require(!has_slot || slot != zero, "its slot must be above zero")?;
        require(!has_slot || interval >= slot, "it can post at most one message per slot")
    }
}

const TECHNOLOGY: &str =
    "the wire format does not fit the link: InfiniBand needs credits, RoCE needs pause";
const NO_RECEIVER: &str = "it has no receiver";
const NOT_A_PEER: &str = "a receiver is not another adapter of this fabric";

#[cfg(test)]
mod tests;
