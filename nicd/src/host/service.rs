//! The programs that this NIC imitates for its peers, as `[[serve]]` names them.

pub mod perftest;
pub mod rping;

use crate::host::responder::Delivery;
use crate::host::work::Work;
use proto::ids::QueuePairNumber;

/// The program's state for one connection.
#[derive(Debug)]
pub enum Session {
    /// A client of `rping`.
    Rping(rping::Rping),
    /// The connection over which a test of perftest exchanges its parameters.
    Control(perftest::Control),
    /// A connection that a test of perftest measures.
    Data,
}

/// What a session knows of its service's memory.
#[derive(Clone, Copy, Debug)]
pub struct Exposed {
    /// The queue pair of the connection.
    pub number: QueuePairNumber,
    /// The R_Key.
    pub key: u32,
    /// The first virtual address.
    pub start: u64,
}

impl Session {
    /// A message has arrived; `head` has its first octets. Returns what to send.
    ///
    /// # Errors
    /// If the message is none of the program's: the connection ends.
    pub fn on_message(
        &mut self,
        delivery: &Delivery,
        head: &[u8],
        exposed: &Exposed,
    ) -> Result<Option<Work>, Unexpected> {
        match self {
            Session::Rping(rping) => rping.on_message(delivery, head).map(Some),
            Session::Control(control) => control.on_message(delivery, head, exposed).map(Some),
            Session::Data => Ok(None),
        }
    }

    /// Work is complete. Returns what to do next.
    pub fn on_completed(&mut self, work: Work) -> Option<Work> {
        match self {
            Session::Rping(rping) => rping.on_completed(work),
            Session::Control(_) | Session::Data => None,
        }
    }
}

/// A message that the program does not expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected;
