//! The CNP: a receiver of CE-marked packets sends it to the queue pair that sent them.
//!
//! Sixteen octets of zeros follow its BTH. Source: IBTA Vol 1, annex A17.9.3.

use crate::ids::{Psn, QueuePairNumber};
use crate::wire::infiniband::{Bth, Opcode};

/// Number of reserved octets after the BTH of a CNP.
pub const BODY_LEN: usize = 16;

/// The BTH of a CNP to `queue_pair`, with the partition key of the marked packet.
pub const fn bth(queue_pair: QueuePairNumber, partition_key: u16) -> Bth {
    let plain = Bth::new(Opcode::ROCEV2_CNP, queue_pair, Psn::truncate(0));
    Bth { becn: true, partition_key, ..plain }
}
