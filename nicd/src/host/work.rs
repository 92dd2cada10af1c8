//! Work requests of a host queue pair, and the packets that they make.

use crate::host::responder::packets;
use proto::wire::infiniband::opcode::Operation;
use proto::wire::infiniband::{AtomicEth, ExtendedHeaders, ImmDt, Opcode, Reth};
use std::ops::Range;

/// Octets of an atomic's result.
const RESULT: usize = 8;

/// A work request, and its result: READs and atomics come back with their octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Chosen by the program.
    pub id: u64,
    /// SEND, WRITE, READ request or an atomic.
    pub operation: Operation,
    /// The remote place; not used by a SEND.
    pub reth: Reth,
    /// What an atomic compares with, and what it swaps in or adds.
    pub operands: (u64, u64),
    /// Immediate data of a SEND or WRITE.
    pub immediate: Option<[u8; 4]>,
    /// The octets to send, or those that have been fetched.
    pub octets: Vec<u8>,
    /// Waits for READs and atomics before it.
    pub fence: bool,
    /// Sets the solicited-event bit.
    pub solicited: bool,
}

/// A packet of a work request.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its opcode.
    pub opcode: Opcode,
    /// Its extended headers.
    pub extended: ExtendedHeaders,
    /// Its payload, within the octets.
    pub place: Range<usize>,
    /// Whether it is the last one.
    pub is_last: bool,
    /// PSNs that it takes: those of the responses, for a READ.
    pub numbers: u32,
}

impl Work {
    /// Work with no option.
    pub fn new(operation: Operation, reth: Reth, octets: Vec<u8>) -> Work {
        Work {
            id: 0,
            operation,
            reth,
            operands: (0, 0),
            immediate: None,
            octets,
            fence: false,
            solicited: false,
        }
    }

    /// A SEND of these octets.
    pub fn send(octets: Vec<u8>) -> Work {
        let reth = Reth { virtual_address: 0, remote_key: 0, dma_length: 0 };
        Work::new(Operation::Send, reth, octets)
    }

    /// Whether it needs a response: a READ or an atomic.
    pub fn is_answered(&self) -> bool {
        !matches!(self.operation, Operation::Send | Operation::Write)
    }

    /// Octets to send or to fetch.
    pub fn length(&self) -> usize {
        match self.operation {
            Operation::ReadRequest => self.reth.dma_length as usize,
            Operation::CompareSwap | Operation::FetchAdd => RESULT,
            _ => self.octets.len(),
        }
    }

    /// PSNs that it takes.
    pub fn packets(&self, mtu: u32) -> u32 {
        packets(self.length(), mtu)
    }

    /// The packet that begins `offset` packets after the first.
    pub fn part(&self, offset: u32, mtu: u32) -> Part {
        let count = self.packets(mtu);
        let begin = offset as usize * mtu as usize;
        let none = ExtendedHeaders::NONE;
        match self.operation {
            Operation::ReadRequest => {
                let reth = Reth {
                    virtual_address: self.reth.virtual_address.wrapping_add(begin as u64),
                    dma_length: (self.length() - begin) as u32,
                    ..self.reth
                };
                Part {
                    opcode: Opcode::RC_READ_REQUEST,
                    extended: ExtendedHeaders { reth: Some(reth), ..none },
                    place: 0..0,
                    is_last: true,
                    numbers: count - offset,
                }
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                let (compare, swap_or_add) = self.operands;
                let Reth { virtual_address, remote_key, .. } = self.reth;
                let atomic = AtomicEth { virtual_address, remote_key, swap_or_add, compare };
                let swaps = self.operation == Operation::CompareSwap;
                Part {
                    opcode: if swaps { Opcode::RC_COMPARE_SWAP } else { Opcode::RC_FETCH_ADD },
                    extended: ExtendedHeaders { atomic_eth: Some(atomic), ..none },
                    place: 0..0,
                    is_last: true,
                    numbers: 1,
                }
            }
            operation => {
                let (is_first, is_last) = (offset == 0, offset + 1 == count);
                let reth = Reth { dma_length: self.octets.len() as u32, ..self.reth };
                let is_write = operation == Operation::Write;
                let immediate = self.immediate.filter(|_| is_last);
                Part {
                    opcode: opcode(is_write, (is_first, is_last), immediate.is_some()),
                    extended: ExtendedHeaders {
                        reth: (is_write && is_first).then_some(reth),
                        immdt: immediate.map(|data| ImmDt { data }),
                        ..none
                    },
                    place: begin..self.octets.len().min(begin + mtu as usize),
                    is_last,
                    numbers: 1,
                }
            }
        }
    }
}

fn opcode(is_write: bool, ends: (bool, bool), has_immediate: bool) -> Opcode {
    match (is_write, ends, has_immediate) {
        (false, (true, false), _) => Opcode::RC_SEND_FIRST,
        (false, (false, false), _) => Opcode::RC_SEND_MIDDLE,
        (false, (false, true), false) => Opcode::RC_SEND_LAST,
        (false, (false, true), true) => Opcode::RC_SEND_LAST_IMMEDIATE,
        (false, (true, true), false) => Opcode::RC_SEND_ONLY,
        (false, (true, true), true) => Opcode::RC_SEND_ONLY_IMMEDIATE,
        (true, (true, false), _) => Opcode::RC_WRITE_FIRST,
        (true, (false, false), _) => Opcode::RC_WRITE_MIDDLE,
        (true, (false, true), false) => Opcode::RC_WRITE_LAST,
        (true, (false, true), true) => Opcode::RC_WRITE_LAST_IMMEDIATE,
        (true, (true, true), false) => Opcode::RC_WRITE_ONLY,
        (true, (true, true), true) => Opcode::RC_WRITE_ONLY_IMMEDIATE,
    }
}
