//! What a message finds at the receiver, and how the receiver behaves.

use crate::host::memory::Place;
use std::collections::VecDeque;
use verbs::attributes::Access;

/// A receive request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Its identifier.
    pub id: u64,
    /// The buffer.
    pub place: Place,
}

/// What messages find that need a receive request.
#[derive(Debug)]
pub enum Receives {
    /// A program that looks at the first octets of each SEND. It is ready, or busy.
    Program {
        /// Whether it is ready.
        is_ready: bool,
    },
    /// Receive requests, used in their order.
    Posted(VecDeque<Receive>),
}

impl Receives {
    /// Whether a message finds one.
    pub fn is_ready(&self) -> bool {
        match self {
            Receives::Program { is_ready } => *is_ready,
            Receives::Posted(posted) => !posted.is_empty(),
        }
    }

    /// Takes the next.
    pub fn take(&mut self) -> Option<Receive> {
        match self {
            Receives::Program { .. } => None,
            Receives::Posted(posted) => posted.pop_front(),
        }
    }
}

/// How a responder behaves.
#[derive(Debug)]
pub struct Behaviour {
    /// What the peer may do, besides SEND.
    pub access: Access,
    /// Code of the wait that RNR NAKs ask for.
    pub rnr_timer: u8,
    /// What a SEND finds.
    pub receives: Receives,
}

impl Behaviour {
    /// That of a service: a short wait of code 12, 0.64 ms. Source: IBTA Vol 1, 9.7.5.2.8.
    pub fn service() -> Behaviour {
        let receives = Receives::Program { is_ready: true };
        Behaviour { access: Access::ALL, rnr_timer: 12, receives }
    }
}
