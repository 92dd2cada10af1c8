//! Validation of a NIC's configuration.

use crate::config::{
    Arrivals, ClassConfig, Encapsulation, MTU_MAX, NicConfig, Operation, RoceConfig, StepConfig,
    Target, TrafficConfig, Transport,
};
use proto::congestion::{Roles, SchemeError};
use proto::frame::ethernet_size;
use proto::ids::Lid;
use proto::link::{FlowControlConfig, PauseConfig, PauseMode};
use proto::units::{Bytes, Duration};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::EthernetHeader;
use std::sync::Arc;

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The LID is not a unicast LID. Source: IBTA Vol 1, 4.1.3.
    #[error("LID {0} is not a unicast address")]
    Lid(Lid),
    /// The LID is not in the list of adapters, or is in it twice.
    #[error("LID {0} must be in the list of adapters exactly once")]
    Adapters(Lid),
    /// A field is out of range.
    #[error("{field} is {value}: {allowed}")]
    Field {
        /// The field's key.
        field: &'static str,
        /// The configured value, or the length of a list.
        value: u64,
        /// The permitted range.
        allowed: &'static str,
    },
    /// The congestion control scheme is unknown, or refuses a parameter.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// The wire format does not fit the link's flow control.
    #[error("the wire format does not fit the link: InfiniBand needs credits, RoCE needs pause")]
    Technology,
    /// A connection class is impossible on this NIC.
    #[error("class {class}: {reason}")]
    Class {
        /// The index of the class.
        class: usize,
        /// The violated rule.
        reason: &'static str,
    },
    /// A traffic item is impossible on this NIC.
    #[error("traffic {name:?}: {reason}")]
    Traffic {
        /// The item's name.
        name: String,
        /// The violated rule.
        reason: &'static str,
    },
}

/// The largest message. Source: IBTA Vol 1, 9.7.7 (2^31 octets).
const MESSAGE_MAX: Bytes = Bytes::new(1 << 31);
/// Octets of a test frame that the MTU does not count: Ethernet header and FCS. Source: IEEE 802.3, 3.2.
const TEST_FRAME_OVERHEAD: u64 = EthernetHeader::LEN as u64 + 4;
/// A planned queue pair number has eight bits for the class, and the value 0 is reserved.
const CLASSES_MAX: usize = 255;

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
            _ => return Err(ConfigError::Technology),
        }
        let adapters = self.check_adapters()?;
        for (index, class) in self.classes.iter().enumerate() {
            self.check_class(class)
                .map_err(|reason| ConfigError::Class { class: index, reason })?;
        }
        for item in &self.traffic {
            self.check_traffic(item, &adapters)
                .map_err(|reason| ConfigError::Traffic { name: item.name.clone(), reason })?;
        }
        Ok(self.scheme.roles()?)
    }

    fn check_class(&self, class: &ClassConfig) -> Result<(), &'static str> {
        let is_infiniband = self.wire == Encapsulation::Infiniband;
        let is_test = class.transport == Transport::Test;
        let writes = class.operation == Operation::Write;
        let lane = self.sl2vl[class.service_level.index()];
        first_fault([
            (
                is_infiniband && lane >= self.link.data_lanes(),
                "its service level has no operational data lane",
            ),
            (class.transport == Transport::Ud && writes, "a UD message cannot be an RDMA WRITE"),
            (is_test && writes, "a test frame cannot be an RDMA WRITE"),
            (
                is_test && !self.has_pcp(),
                "test frames need an Ethernet link with priorities by PCP",
            ),
        ])
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
        let rules = [
            ("retry_count", u64::from(self.retry_count), self.retry_count <= 7, "0 to 7"),
            (
                "resequence.window",
                self.wire.resequence().map_or(0, |config| config.window.into()),
                self.wire.resequence().is_none_or(|config| (2..=1 << 16).contains(&config.window)),
                "2 to 65536",
            ),
            ("rnr_retry", u64::from(self.rnr_retry), self.rnr_retry <= 7, "0 to 7"),
            ("sl2vl", self.sl2vl.len() as u64, self.sl2vl.len() == 16, "sixteen entries"),
            ("data_lanes", u64::from(lanes), (1..=15).contains(&lanes), "1 to 15"),
            (
                "mtu",
                mtu,
                (256..=MTU_MAX as u64).contains(&mtu) && mtu.is_multiple_of(4),
                "256 to 4096, a multiple of 4",
            ),
            (
                "classes",
                self.classes.len() as u64,
                self.classes.len() <= CLASSES_MAX,
                "at most 255",
            ),
            (
                "traffic",
                self.traffic.len() as u64,
                self.traffic.len() < usize::from(u16::MAX),
                "at most 65534 items",
            ),
        ];
        match rules.into_iter().find(|(_, _, holds, _)| !holds) {
            Some((field, value, _, allowed)) => Err(ConfigError::Field { field, value, allowed }),
            None => Ok(()),
        }
    }

    fn check_roce(&self, roce: &RoceConfig, pause: &PauseConfig) -> Result<(), ConfigError> {
        let levels = roce.dscp.len();
        let refuse = |field, value, allowed| Err(ConfigError::Field { field, value, allowed });
        if levels != 16 {
            return refuse("dscp", levels as u64, "sixteen entries");
        }
        let storm = roce.storm.map_or(0, |storm| storm.priorities);
        if pause.mode == PauseMode::Pfc && storm & !pause.lossless != 0 {
            return refuse("storm.priorities", storm.into(), "lossless priorities of the link");
        }
        match roce.drain {
            Some(drain) if drain.xon > drain.xoff => refuse("xon", drain.xon.get(), "at most xoff"),
            Some(drain) if drain.xoff >= self.link.buffer => {
                refuse("xoff", drain.xoff.get(), "below the link's buffer")
            }
            _ => Ok(()),
        }
    }

    /// Returns the adapters' LIDs in ascending order.
    fn check_adapters(&self) -> Result<Vec<Lid>, ConfigError> {
        if let Some(lid) = self.adapters.iter().chain([&self.lid]).find(|lid| !lid.is_unicast()) {
            return Err(ConfigError::Lid(*lid));
        }
        let mut sorted = self.adapters.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ConfigError::Adapters(pair[0])),
            None if sorted.binary_search(&self.lid).is_err() => {
                Err(ConfigError::Adapters(self.lid))
            }
            None => Ok(sorted),
        }
    }

    fn check_script(
        &self,
        steps: &[StepConfig],
        is_test: bool,
        is_peer: impl Fn(&Lid) -> bool,
    ) -> Result<(), &'static str> {
        let fits = |size: Bytes| match is_test {
            true => self.test_frame_sizes().contains(&size.get()),
            false => (1..=MESSAGE_MAX.get()).contains(&size.get()),
        };
        let has_size = |step: &StepConfig| step.messages > 0 && fits(step.size) && fits(step.last);
        first_fault([
            (!steps.iter().all(|step| is_peer(&step.to)), NOT_A_PEER),
            (
                !steps.iter().all(has_size),
                "a step has at least one message, of a size that its transport carries",
            ),
        ])
    }

    fn check_traffic(&self, item: &TrafficConfig, adapters: &[Lid]) -> Result<(), &'static str> {
        let Some(class) = self.classes.get(usize::from(item.class)) else {
            return Err("its class does not exist");
        };
        let is_test = class.transport == Transport::Test;
        first_fault([
            (item.size > MESSAGE_MAX, "a message has at most 2 GiB"),
            (
                class.transport == Transport::Ud && item.size > self.link.mtu,
                "a UD message has at most one MTU",
            ),
            (
                is_test && !self.test_frame_sizes().contains(&item.size.get()),
                "a test frame has at least 64 octets and at most one MTU of payload",
            ),
        ])?;
        let is_peer = |lid: &Lid| *lid != self.lid && adapters.binary_search(lid).is_ok();
        match &item.to {
            Target::Uniform => first_fault([(self.adapters.len() < 2, NO_RECEIVER)])?,
            Target::Lids(lids) => first_fault([
                (lids.is_empty(), NO_RECEIVER),
                (!lids.iter().all(is_peer), NOT_A_PEER),
            ])?,
            Target::Script(steps) => return self.check_script(steps, is_test, is_peer),
        }
        let has_interval = matches!(item.arrivals, Arrivals::Poisson | Arrivals::Paced);
        let has_slot = item.arrivals == Arrivals::Bernoulli;
        first_fault([
            (has_interval && item.interval == Duration::ZERO, "its interval must be above zero"),
            (has_slot && item.slot == Duration::ZERO, "its slot must be above zero"),
            (has_slot && item.interval < item.slot, "it can post at most one message per slot"),
        ])
    }
}

const NO_RECEIVER: &str = "it has no receiver";
const NOT_A_PEER: &str = "a receiver is not another adapter of this fabric";

/// The message of the first fault that is present.
fn first_fault<const N: usize>(faults: [(bool, &'static str); N]) -> Result<(), &'static str> {
    faults.into_iter().find(|(is_present, _)| *is_present).map_or(Ok(()), |(_, text)| Err(text))
}

#[cfg(test)]
mod tests;
