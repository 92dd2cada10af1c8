//! ENC-18: our RoCEv2 frames as scapy decodes them.

use crate::prelude::*;
use crate::samples::{networks, roce_builder, roce_octets};
use launch::programs::run;
use proto::wire::infiniband::opcode::Operation;
use proto::wire::infiniband::{Bth, Opcode};
use proto::wire::internet::mark_congestion;
use proto::wire::roce::{Packet, PacketBuilder, notification};
use serde_json::Value;
use std::ffi::OsStr;

/// What scapy is asked; it answers an object a frame.
const SCRIPT: &str = include_str!("scapy_roce.py");

/// Where a Python with scapy may be: first, then the distribution's.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// ENC-18: opcode, F, B, destination, PSN and ICRC of every opcode, marked and not.
pub fn agreement_with_scapy(_: Level) -> Finding {
    let frames = frames();
    let icrcs = judged(&frames)?;
    Ok(format!("{} frames decoded alike, {icrcs} ICRCs computed alike", frames.len()))
}

/// Lets scapy decode frames of RoCEv2, and compute their ICRCs and checksums where it can; how many
/// of those it computed.
///
/// # Errors
/// If it finds anything other than we do; skipped where there is no scapy.
pub fn judged(frames: &[Vec<u8>]) -> Result<usize> {
    let has = |python: &&str| {
        let words = ["-c", "import scapy.contrib.roce, scapy.contrib.mac_control"].map(OsStr::new);
        matches!(run(python, &words), Ok((true, _)))
    };
    let Some(python) = PYTHONS.iter().find(|python| has(python)) else {
        return Err(Failure::Skipped("no Python with scapy is here".to_owned()));
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("frames");
    std::fs::write(&file, lines(frames))?;
    let words = [OsStr::new("-c"), OsStr::new(SCRIPT), file.as_os_str()];
    let (good, answer) = run(python, &words)?;
    ensure!(good, "{answer}");
    let decoded: Result<Vec<Value>, _> = answer.lines().map(serde_json::from_str).collect();
    let decoded = decoded.map_err(|error| format!("{error}: {answer}"))?;
    same("frames that scapy decoded", decoded.len(), frames.len())?;
    let mut icrcs = 0;
    for (frame, decoded) in frames.iter().zip(&decoded) {
        icrcs += compare(frame, decoded)?;
    }
    Ok(icrcs)
}

/// Every opcode of RoCEv2 over IPv4 and IPv6, with each setting of F and B; then all of them marked.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (_, network) in &networks()[..2] {
        for opcode in Opcode::ALL.iter().filter(|opcode| **opcode != Opcode::CNP) {
            let plain = roce_builder(*opcode, *network);
            let payload = match opcode.row().map(|row| row.operation) {
                Some(Operation::Send | Operation::Write | Operation::ReadResponse) => 21,
                Some(Operation::Congestion) => notification::BODY_LEN,
                _ => 0,
            };
            for (fecn, becn) in [(false, false), (true, false), (false, true), (true, true)] {
                let builder = PacketBuilder { bth: Bth { fecn, becn, ..plain.bth }, ..plain };
                frames.push(roce_octets(&builder, &[0x5a; 24][..payload]));
            }
        }
    }
    let mut marked = frames.clone();
    for frame in &mut marked {
        mark_congestion(frame);
    }
    frames.extend(marked);
    frames
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn lines(frames: &[Vec<u8>]) -> String {
    frames.iter().map(|frame| hex(frame) + "\n").collect()
}

/// Whether scapy has computed the ICRC of this frame itself, as 0 or 1.
fn compare(frame: &[u8], decoded: &Value) -> Result<usize> {
    let packet = Packet::parse(frame)?.ok_or("no RoCE was seen")?;
    let bth = packet.transport.bth;
    let what = |field: &str| format!("{field} of {}", bth.opcode);
    let fields = [
        ("opcode", u32::from(bth.opcode.0)),
        ("fecn", bth.fecn.into()),
        ("becn", bth.becn.into()),
        ("dqpn", bth.destination.get()),
        ("psn", bth.psn.get()),
        ("ackreq", bth.ack_request.into()),
        ("padcount", bth.pad_count.into()),
        ("pkey", bth.partition_key.into()),
    ];
    for (field, ours) in fields {
        same(what(field), &decoded[field], &Value::from(ours))?;
    }
    let icrc = Value::from(hex(&packet.icrc.to_le_bytes()));
    same(what("ICRC"), &decoded["icrc"], &icrc)?;
    let Some(computed) = decoded.get("computed_icrc") else { return Ok(0) };
    same(what("ICRC as scapy computes it"), computed, &icrc)?;
    same(what("IPv4 checksum"), &decoded["computed_ip_checksum"], &decoded["ip_checksum"])?;
    Ok(1)
}
