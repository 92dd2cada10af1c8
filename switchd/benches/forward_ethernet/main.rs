//! What a switch of Ethernet does for one RoCEv2 frame outside the kernel: from the socket's octets to
//! the next line's.
//!
//! A frame is copied out of a socket buffer, classified, its priority and output found, taken into the
//! shared pool, queued, judged, taken by the output, marked (the IPv4 checksum follows) and handed
//! over; then its room is given back. A switch has no business with the ICRC.
//!
//! Then what the same hop costs where queues are sampled and each sample is answered ([`in_turn`]).

mod hop;
mod in_turn;

use bytes::BytesMut;
use criterion::{Criterion, Throughput};
use hop::{DCQCN, DESTINATION, Hop, NONE, SOURCE};
use proto::frame::{Frame, FrameKind};
use proto::ids::{Dscp, Ecn, Psn, QueuePairNumber};
use proto::wire::classify::classify;
use proto::wire::ethernet::plan;
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};
use std::hint::black_box;

/// Octets of payload whose hop is measured: short, and what fits into 1.5 KB.
const PAYLOADS: [usize; 3] = [64, 1024, 1436];

/// A SEND of priority 3.
fn send(payload: usize) -> BytesMut {
    let from = SOURCE;
    let (source, destination) = (plan::ipv4(from), plan::ipv4(DESTINATION));
    let (dscp, ecn) = (Dscp::truncate(24), Ecn::Capable0);
    let ip = Ipv4 { dscp, ecn, source, destination, ..Ipv4::default() };
    let queue_pair = QueuePairNumber::planned(0, from);
    let builder = PacketBuilder {
        destination: plan::mac(DESTINATION),
        source: plan::mac(from),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc001)),
        bth: Bth::new(Opcode::RC_SEND_ONLY, queue_pair, Psn::truncate(77)),
        extended: ExtendedHeaders::default(),
    };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |place| place.fill(0xa5)).expect("short enough");
    octets
}

/// That what is timed is what is claimed.
fn check(passed: &Frame, sent: &[u8], marks: bool) {
    let headers = classify(FrameKind::Ethernet, &passed.octets).expect("a good frame");
    assert_eq!(headers.ecn == Ecn::CongestionExperienced, marks);
    assert!(verify_checksums(&passed.octets).is_ok() && verify_icrc(&passed.octets).is_ok());
    assert_eq!(passed.octets.len(), sent.len());
}

fn forward(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("forward ethernet");
    group.throughput(Throughput::Elements(1));
    for payload in PAYLOADS {
        let octets = send(payload);
        for (control, what) in [(NONE, ""), (DCQCN, ", marked")] {
            let mut hop = Hop::new(control);
            let passed = hop.pass(&octets);
            check(&passed, &octets, control.scheme == "dcqcn");
            hop.recycle(passed);
            group.bench_function(format!("{payload} B{what}"), |b| {
                b.iter(|| {
                    let passed = hop.pass(black_box(&octets));
                    hop.recycle(passed);
                });
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    forward(&mut criterion);
    criterion.final_summary();
    for payload in [1024, 1436] {
        in_turn::compare(payload, &send(payload));
    }
}
