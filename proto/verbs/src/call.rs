//! The calls: one verb each, with its modifiers.

use crate::attributes::{Access, AddressVector, Handle, QpAttributes, Service};
use crate::octets::Octets;
use crate::pattern::Pattern;
use crate::work::{Places, ReceiveWork, SendWork};
use serde::{Deserialize, Serialize};

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Which agent is there, and which devices it has.
    Hello,
    /// Ends all objects.
    Clear,
    /// Opens a device; the first without a name.
    OpenDevice {
        /// Its name.
        name: Option<String>,
    },
    /// Limits of a device and state of its port.
    QueryPort {
        /// The device.
        device: Handle,
    },
    /// An entry of the GID table of a device.
    QueryGid {
        /// The device.
        device: Handle,
        /// From 0.
        index: u8,
    },
    /// The counters of a device, by the names that it gives them.
    Counters {
        /// The device.
        device: Handle,
    },
    /// Makes a protection domain.
    AllocPd {
        /// The device.
        device: Handle,
    },
    /// Makes a memory region of zeros.
    RegisterMemory {
        /// The protection domain.
        pd: Handle,
        /// Octets.
        length: u64,
        /// What peers may do.
        access: Access,
    },
    /// Makes a completion queue.
    CreateCq {
        /// The device.
        device: Handle,
        /// Completions that it holds at least.
        entries: u32,
    },
    /// Makes a queue pair, each of whose work requests has a completion.
    CreateQp {
        /// The protection domain.
        pd: Handle,
        /// The service.
        service: Service,
        /// Completion queue of sends.
        send_cq: Handle,
        /// Completion queue of receives.
        receive_cq: Handle,
        /// Work requests that the send queue holds at least.
        send_depth: u32,
        /// Work requests that the receive queue holds at least.
        receive_depth: u32,
    },
    /// Changes attributes of a queue pair.
    ModifyQp {
        /// The queue pair.
        qp: Handle,
        /// Those to be changed.
        attributes: QpAttributes,
    },
    /// Attributes of a queue pair.
    QueryQp {
        /// The queue pair.
        qp: Handle,
    },
    /// Makes an address handle.
    CreateAh {
        /// The protection domain.
        pd: Handle,
        /// The address.
        address: AddressVector,
    },
    /// Ends an object.
    Destroy {
        /// The object.
        object: Handle,
    },
    /// Posts work requests to a send queue.
    PostSend {
        /// The queue pair.
        qp: Handle,
        /// The first, and how the others differ.
        work: SendWork,
        /// How many.
        count: u32,
    },
    /// Posts work requests to a receive queue.
    PostReceive {
        /// The queue pair.
        qp: Handle,
        /// The first, and how the others differ.
        work: ReceiveWork,
        /// How many.
        count: u32,
    },
    /// Takes completions from a queue.
    Poll {
        /// The completion queue.
        cq: Handle,
        /// Completions to wait for, at most [`crate::BATCH_MAX`].
        count: u32,
        /// The longest wait in milliseconds, at most [`WAIT_MAX_MS`]. An agent may answer earlier with fewer.
        wait_ms: u32,
    },
    /// Fills places with a pattern, which goes on from one place to the next.
    Fill {
        /// The places.
        places: Places,
        /// How many.
        count: u32,
        /// The content.
        pattern: Pattern,
    },
    /// Compares places with a pattern, which goes on from one place to the next.
    Check {
        /// The places.
        places: Places,
        /// How many.
        count: u32,
        /// The content expected.
        pattern: Pattern,
    },
    /// CRC-32 (IEEE 802.3) of places, one after the other.
    Checksum {
        /// The places.
        places: Places,
        /// How many.
        count: u32,
    },
    /// Reads octets of memory.
    ReadMemory {
        /// The region.
        memory: Handle,
        /// From its start.
        offset: u64,
        /// At most [`crate::OCTETS_MAX`].
        length: u32,
    },
    /// Writes octets to memory.
    WriteMemory {
        /// The region.
        memory: Handle,
        /// From its start.
        offset: u64,
        /// At most [`crate::OCTETS_MAX`].
        octets: Octets,
    },
}

impl Call {
    /// Whether it makes an object.
    pub fn makes_object(&self) -> bool {
        matches!(
            self,
            Call::OpenDevice { .. }
                | Call::AllocPd { .. }
                | Call::RegisterMemory { .. }
                | Call::CreateCq { .. }
                | Call::CreateQp { .. }
                | Call::CreateAh { .. }
        )
    }
}

/// The longest wait of a poll.
pub const WAIT_MAX_MS: u32 = 10_000;
