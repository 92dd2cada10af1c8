//! The server of rping.
//!
//! ```text
//!   client                          server
//!     │── SEND (place of the ping) ──▶│
//!     │◀───────── READ ───────────────│
//!     │◀── SEND (go ahead) ───────────│
//!     │── SEND (place of the pong) ──▶│
//!     │◀───────── WRITE ──────────────│
//!     │◀── SEND (go ahead) ───────────│   and again
//! ```
//!
//! A place has an address of 8 octets, an R_Key of 4 and a length of 4, big endian. Source: rdma-core,
//! librdmacm/examples/rping.c.

use crate::host::responder::Delivery;
use crate::host::service::Unexpected;
use crate::host::work::Work;
use proto::wire::infiniband::Reth;
use proto::wire::infiniband::opcode::Operation;

/// Octets of a place.
const PLACE: usize = 16;
/// The largest ping that rping sends.
const PING_MAX: u32 = 64 * 1024;

/// What the server of rping waits for.
#[derive(Debug, Default)]
enum State {
    /// The place of a ping.
    #[default]
    Idle,
    /// The octets of the ping.
    Reading,
    /// The place of the pong, for these octets.
    Read(Vec<u8>),
    /// The end of the WRITE.
    Writing,
}

/// The server's side of one connection.
#[derive(Debug, Default)]
pub struct Rping {
    state: State,
}

impl Rping {
    /// The client has sent a place.
    ///
    /// # Errors
    /// If the message is not a place, or not expected now.
    pub fn on_message(&mut self, delivery: &Delivery, head: &[u8]) -> Result<Work, Unexpected> {
        let Ok(octets) = <[u8; PLACE]>::try_from(head) else { return Err(Unexpected) };
        if delivery.operation != Operation::Send || delivery.length != PLACE as u64 {
            return Err(Unexpected);
        }
        // The layout is that of a RETH.
        let reth = Reth::parse(&octets).map_err(|_| Unexpected)?;
        if reth.dma_length > PING_MAX {
            return Err(Unexpected);
        }
        match std::mem::take(&mut self.state) {
            State::Idle => {
                self.state = State::Reading;
                Ok(Work::new(Operation::ReadRequest, reth, Vec::new()))
            }
            State::Read(mut octets) => {
                self.state = State::Writing;
                octets.truncate(reth.dma_length as usize);
                let reth = Reth { dma_length: octets.len() as u32, ..reth };
                Ok(Work::new(Operation::Write, reth, octets))
            }
            State::Reading | State::Writing => Err(Unexpected),
        }
    }

    /// Work is complete: after the READ and after the WRITE the client may go ahead.
    pub fn on_completed(&mut self, work: Work) -> Option<Work> {
        self.state = match work.operation {
            Operation::ReadRequest => State::Read(work.octets),
            Operation::Write => State::Idle,
            _ => return None,
        };
        Some(Work::send(vec![0; PLACE]))
    }
}
