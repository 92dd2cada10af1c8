//! Stock tshark dissects our captures without a malformed packet. Skipped if there is no tshark.

// Starts tshark, like a user who opens a capture.
#![allow(clippy::disallowed_methods, reason = "it starts tshark")]

use bytes::BytesMut;
use capture::{Capture, CapturePlan, CapturedPort, WhenFull};
use emulation::frame_tap::FrameTap;
use emulation::observer::Passage;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::PortNumber;
use proto::technology::Technology;
use proto::units::{BitRate, Bytes, Duration, Instant};
use std::path::Path;
use std::process::Command;

fn port(index: usize) -> PortNumber {
    PortNumber::from_index(index)
}

fn wiring() -> Wiring {
    let node = |name: &str, kind| NodeWiring { name: name.to_owned(), kind, ports: 2, level: 0 };
    let link = LinkWiring {
        a: End { node: 0, port: port(0) },
        b: End { node: 1, port: port(0) },
        delay: Duration::ZERO,
        frame_time: Duration::from_ns(2074),
    };
    let nodes = vec![node("leaf7", NodeKind::Switch), node("h31", NodeKind::Nic)];
    Wiring { nodes, links: vec![link], ..Wiring::default() }
}

/// RC SEND only, 64 octets of neutral payload, queue pair 0x10001, zeros for CRCs (tshark checks
/// none of them).
fn infiniband() -> Frame {
    let mut octets = BytesMut::new();
    let words = (8 + 12 + 64 + 4) / 4u16;
    octets.extend_from_slice(&[0x00, 0x02, 0x00, 0x05]);
    octets.extend_from_slice(&words.to_be_bytes());
    octets.extend_from_slice(&[0x00, 0x04]);
    octets.extend_from_slice(&[0x04, 0x00, 0xff, 0xff, 0x00, 0x01, 0x00, 0x01, 0x80, 0, 0, 7]);
    octets.extend_from_slice(&[0x55; 64]);
    octets.extend_from_slice(&[0; 6]);
    Frame::intact(FrameKind::Infiniband, octets)
}

fn ethernet() -> Frame {
    let mut octets = BytesMut::from([0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2].as_slice());
    octets.extend_from_slice(&[0x88, 0xb6]);
    octets.extend_from_slice(&[0; 46]);
    Frame::intact(FrameKind::Ethernet, octets)
}

fn write(file: &Path, snaplen: Option<Bytes>) {
    let captured = |index, technology| CapturedPort {
        at: End { node: 0, port: port(index) },
        technology,
        rate: BitRate::gbps(8),
        fed: false,
    };
    let plan = CapturePlan {
        file: file.to_owned(),
        scenario: "toy".to_owned(),
        seed: 7,
        dilation: Some(1_000),
        snaplen,
        when_full: WhenFull::Wait,
        ports: vec![captured(0, Technology::Infiniband), captured(1, Technology::Ethernet)],
    };
    let mut capture = Capture::create(&plan, &wiring(), &[0, 1]).expect("a file");
    let link = Frame::intact(
        FrameKind::InfinibandLink,
        BytesMut::from([0x00, 0x10, 0x00, 0x24, 0xab, 0xcd].as_slice()),
    );
    for n in 0..5 {
        let at = Instant::from_ps(n * 2_074_000);
        capture.frame(&infiniband(), &Passage::at_once(0, port(0), Direction::Rx, at));
        capture.frame(&link, &Passage::at_once(0, port(0), Direction::Tx, at));
        capture.frame(&ethernet(), &Passage::at_once(0, port(1), Direction::Tx, at));
    }
    assert_eq!(capture.finish(Instant::from_ps(20_000_000)).error, None);
}

/// The output of tshark, one line a packet; `None` if it cannot be started.
fn tshark(file: &Path, more: &[&str]) -> Option<Vec<String>> {
    let output = Command::new("tshark").arg("-n").arg("-r").arg(file).args(more).output().ok()?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    let text = String::from_utf8(output.stdout).expect("fields are text");
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn plain_tshark_reads_our_captures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("leaf7.pcapng");
    write(&file, None);
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.len", "infiniband.bth.destqp"];
    let mut arguments = vec!["-T", "fields", "-E", "separator=,"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let Some(lines) = tshark(&file, &arguments) else {
        eprintln!("skipped: tshark is not here");
        return;
    };
    assert_eq!(lines.len(), 15);
    assert_eq!(lines[0], "leaf7:1,0.000000000,90,0x010001");
    assert_eq!(lines[1], "leaf7:1/link,0.000000000,6,");
    assert_eq!(lines[5], "leaf7:2,0.000002074,60,");
    let malformed = tshark(&file, &["-Y", "_ws.malformed"]).expect("it was here before");
    assert!(malformed.is_empty(), "{malformed:?}");
    let sent = tshark(&file, &["-Y", "frame.p2p_dir == 0 || frame.packet_flags_direction == 2"]);
    assert_eq!(sent.map(|lines| lines.len()), Some(10));
}

#[test]
fn a_capture_cut_at_the_headers_is_cut_not_malformed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("cut.pcapng");
    write(&file, Some(Bytes::new(32)));
    let Some(lines) = tshark(&file, &["-T", "fields", "-e", "frame.cap_len", "-e", "frame.len"])
    else {
        eprintln!("skipped: tshark is not here");
        return;
    };
    assert_eq!(lines[0], "32\t90");
    assert_eq!(tshark(&file, &["-Y", "_ws.malformed"]).map(|lines| lines.len()), Some(0));
}
