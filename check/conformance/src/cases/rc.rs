//! RC: reliable connections: what a responder acknowledges and refuses, what a requester repeats, and when each gives up.
//!
//! The NIC on stage is adapter 1 of a star of Ethernet; every other adapter is played and serves one dialogue, so
//! no case disturbs another. Queue pairs of the plan begin at PSN 0: the wrap of the PSN is met by PSNs below 0, and
//! by a connection whose peer asks for another start ([`connection`]).
//!
//! Devices under test are asked for most of these rules as well (groups SEQ and TIM of `check/dut/cases.toml`). Those cases need
//! an agent that makes queue pairs and posts; traffic of a scenario has none.

mod connection;
mod requester;
mod responder;

use crate::ethernet::{DELAY, LOSSLESS, RATE, roomy, star};
use crate::prelude::*;
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, NakCode, Opcode, Syndrome};
use proto::wire::roce::PacketBuilder;
use testbed::frames::ethernet::{frame, roce};

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("RC-01", responder::acknowledged),
    ("RC-02", responder::one_nak_a_gap),
    ("RC-03", responder::duplicates),
    ("RC-04", responder::halves),
    ("RC-05", responder::refused),
    ("RC-06", responder::not_ready),
    ("RC-07", responder::coalesced),
    ("RC-08", responder::resequenced),
    ("RC-09", |on| requester::finding(on, "RC-09")),
    ("RC-10", |on| requester::finding(on, "RC-10")),
    ("RC-11", |on| requester::finding(on, "RC-11")),
    ("RC-12", |on| requester::finding(on, "RC-12")),
    ("RC-13", |on| requester::finding(on, "RC-13")),
    ("RC-14", requester::waits),
    ("RC-15", |on| requester::finding(on, "RC-15")),
    ("RC-16", |on| requester::finding(on, "RC-16")),
    ("RC-17", connection::wraps),
    ("RC-18", connection::confirmed),
];

/// The adapter of the NIC on stage.
const OWN: u16 = 1;

/// A NAK for a gap.
const GAP: Syndrome = Syndrome::Nak(NakCode::PsnSequence);

/// Plays the NIC with these keys and tables among `peers` adapters, numbers 2 and up.
fn play_nic(
    on: Level,
    (peers, duration): (u8, &str),
    (keys, rest): (&str, &str),
    write: impl FnOnce(&mut Script),
) -> Result<Record> {
    let rest = format!("{}nic = {{ {keys} }}\n{rest}", roomy(""));
    play(on, &star(peers + 1, duration, "", &rest), "h1", write)
}

/// A request of adapter `from` with `payload` octets; RETH is that of WRITEs.
fn request(
    from: u16,
    opcode: Opcode,
    psn: u32,
    payload: usize,
    extended: ExtendedHeaders,
) -> Frame {
    let plain = roce(from, OWN, LOSSLESS, psn);
    let ack_request = opcode.row().is_some_and(|row| row.ends_message());
    let bth = Bth { opcode, ack_request, ..plain.bth };
    frame(&PacketBuilder { bth, extended, ..plain }, payload)
}

/// An acknowledgement of adapter `from`.
fn acknowledgement(from: u16, syndrome: Syndrome, psn: u32, msn: u32) -> Frame {
    let aeth = Some(Aeth { syndrome, message_sequence_number: msn });
    let extended = ExtendedHeaders { aeth, ..ExtendedHeaders::NONE };
    let mut made = PacketBuilder { extended, ..roce(from, OWN, LOSSLESS, psn) };
    (made.bth.opcode, made.bth.ack_request) = (Opcode::RC_ACKNOWLEDGE, false);
    frame(&made, 0)
}

/// When `frame`, which a neighbour sends at `at`, has come.
fn arrival(at: Instant, frame: &Frame) -> Instant {
    at + frame.line_size().time_at(RATE) + DELAY
}

/// When the queue pair to `peer` has entered the error state; nothing if it has not.
fn errors(record: &Record, peer: u16) -> Vec<Instant> {
    record.events_of(1, |kind| {
        matches!(kind, EventKind::QueuePairError { flow } if flow.destination == u64::from(peer))
    })
}
