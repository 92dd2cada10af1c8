//! Work requests and completions. A call posts many work requests that differ by steps.

use crate::attributes::Handle;
use serde::{Deserialize, Serialize};

/// Places in a memory region: the k-th is `length` octets at `offset` + k · `stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// The memory region.
    pub memory: Handle,
    /// Octets before the first place.
    pub offset: u64,
    /// Octets of a place.
    pub length: u32,
    /// Octets from one place to the next.
    #[serde(default)]
    pub stride: u64,
}

impl Places {
    /// Adjacent places.
    pub fn adjacent(memory: Handle, offset: u64, length: u32) -> Places {
        Places { memory, offset, length, stride: u64::from(length) }
    }

    /// Offset of the k-th place; `None` beyond 64 bits.
    pub fn offset_of(&self, k: u32) -> Option<u64> {
        self.stride.checked_mul(u64::from(k))?.checked_add(self.offset)
    }

    /// Octets from the start of the region to the end of all `count` places; `None` beyond 64 bits.
    pub fn end(&self, count: u32) -> Option<u64> {
        let Some(last) = count.checked_sub(1) else { return Some(0) };
        self.offset_of(last)?.checked_add(u64::from(self.length))
    }
}

/// What a work request of a send queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// Compare and swap of 8 octets.
    CompareSwap,
    /// Fetch and add of 8 octets.
    FetchAdd,
}

/// Places in the peer's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Virtual address of the first.
    pub address: u64,
    /// R_Key.
    pub rkey: u32,
    /// Octets from one to the next.
    #[serde(default)]
    pub stride: u64,
}

/// Operands of atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Operands {
    /// Compared with the number in memory; not used by fetch and add.
    pub compare: u64,
    /// Added to it from one work request to the next.
    pub compare_step: u64,
    /// The new number, or what is added.
    pub swap_or_add: u64,
    /// Added to it from one work request to the next.
    pub swap_or_add_step: u64,
}

/// The receiver of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receiver {
    /// Address handle.
    pub ah: Handle,
    /// Number of its queue pair.
    pub number: u32,
    /// Its Q_Key.
    pub qkey: u32,
}

/// Work requests of a send queue. The k-th has identifier `id` + k and immediate data `immediate` + k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendWork {
    /// Identifier of the first.
    pub id: u64,
    /// What they do.
    pub operation: Operation,
    /// What is sent, or where the answer goes.
    pub places: Places,
    /// Immediate data of the first, for SEND and WRITE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immediate: Option<u32>,
    /// For WRITE, READ and atomics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// For atomics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operands: Option<Operands>,
    /// For datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Receiver>,
    /// Sets the solicited-event bit.
    #[serde(default)]
    pub solicited: bool,
    /// Waits for READs and atomics before it.
    #[serde(default)]
    pub fence: bool,
}

impl SendWork {
    /// Work with no option.
    pub fn new(id: u64, operation: Operation, places: Places) -> SendWork {
        SendWork {
            id,
            operation,
            places,
            immediate: None,
            remote: None,
            operands: None,
            receiver: None,
            solicited: false,
            fence: false,
        }
    }
}

/// Work requests of a receive queue. The k-th has identifier `id` + k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiveWork {
    /// Identifier of the first.
    pub id: u64,
    /// The buffers. Before a datagram come 40 octets of address headers.
    pub places: Places,
}

/// Octets before the payload of a received datagram. Source: IBTA Vol 1, 11.4.1.2.
pub const DATAGRAM_HEADER: u32 = 40;

/// What a completion completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completed {
    /// A SEND of this side.
    Send,
    /// A WRITE of this side.
    Write,
    /// A READ of this side.
    Read,
    /// A compare and swap of this side.
    CompareSwap,
    /// A fetch and add of this side.
    FetchAdd,
    /// A SEND of the peer.
    Receive,
    /// A WRITE of the peer with immediate data.
    ReceiveWrite,
    /// Not known, as after an error.
    Unknown,
}

/// The status of a completion. Source: IBTA Vol 1, 11.6.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is done.
    Success,
    /// A local length does not fit.
    LocalLength,
    /// The queue pair cannot do that.
    LocalOperation,
    /// Local memory is not registered as needed.
    LocalProtection,
    /// The queue pair is in the error state.
    Flushed,
    /// The response is none of the request.
    BadResponse,
    /// NAK: the request is not valid.
    RemoteInvalidRequest,
    /// NAK: the peer's memory is not permitted.
    RemoteAccess,
    /// NAK: the peer cannot do it.
    RemoteOperation,
    /// No answer, as often as it was tried.
    RetriesExceeded,
    /// The receiver was not ready, as often as it was tried.
    RnrRetriesExceeded,
    /// Another error; the agent's own code is in [`Completion::vendor`].
    Other,
}

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Completion {
    /// Identifier of the work request.
    pub id: u64,
    /// What is completed.
    pub completed: Completed,
    /// Its status.
    pub status: Status,
    /// Octets received, or fetched by a READ. Otherwise 0.
    pub length: u32,
    /// Immediate data received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immediate: Option<u32>,
    /// Number of the queue pair here.
    pub number: u32,
    /// Number of the sender's queue pair, for datagrams. Otherwise 0.
    #[serde(default)]
    pub source: u32,
    /// The agent's own code of an error.
    #[serde(default)]
    pub vendor: u32,
}
