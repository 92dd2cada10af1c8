//! The server of perftest's bandwidth tests with `-R`, whose parameters travel over a connection as well.
//!
//! A test makes two connections to one port. On the first, the control connection, the client sends its version,
//! buffer size, cache line, MTU, keys and results one after the other, and the server answers each message with
//! its own of the same length. The connections made after that are measured. Keys have 56 octets, big endian:
//!
//! ```text
//! | LID 4 | reads in flight 4 | QPN 4 | PSN 4 | R_Key 4 | 4 | address 8 | GID 16 | SRQ 4 | GID index 4 |
//! ```
//!
//! Every other answer repeats the question: it means "the same version, buffer, MTU and result as yours". Source:
//! perftest 4.5, src/perftest_communication.c (`rdma_write_keys`, `ctx_xchg_data_rdma`).

use crate::host::responder::{Delivery, HEAD, RESOURCES};
use crate::host::service::{Exposed, Unexpected};
use crate::host::work::Work;
use proto::wire::infiniband::opcode::Operation;

/// Octets of the keys.
const KEYS: usize = 56;

/// The control connection of a test.
#[derive(Debug, Default)]
pub struct Control {
    messages: u32,
    /// Messages received when the first measured connection came.
    measured_since: Option<u32>,
}

impl Control {
    /// Whether another connection of the same peer belongs to this test; if so it is measured. All of them come
    /// after the first exchange of keys and before the next message.
    pub fn admits_data(&mut self) -> bool {
        let since = *self.measured_since.get_or_insert(self.messages);
        self.messages > 0 && since == self.messages
    }

    /// The answer to a message.
    ///
    /// # Errors
    /// If it is longer than any message of perftest.
    pub fn on_message(
        &mut self,
        delivery: &Delivery,
        head: &[u8],
        exposed: &Exposed,
    ) -> Result<Work, Unexpected> {
        if delivery.operation != Operation::Send || delivery.length > HEAD as u64 {
            return Err(Unexpected);
        }
        self.messages = self.messages.saturating_add(1);
        let mut answer = head.to_vec();
        if answer.len() == KEYS {
            answer[4..8].copy_from_slice(&u32::from(RESOURCES).to_be_bytes());
            answer[8..12].copy_from_slice(&exposed.number.get().to_be_bytes());
            answer[16..20].copy_from_slice(&exposed.key.to_be_bytes());
            answer[24..32].copy_from_slice(&exposed.start.to_be_bytes());
        }
        Ok(Work::send(answer))
    }
}
