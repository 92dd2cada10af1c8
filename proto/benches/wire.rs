//! How long the wire codec takes: what each hop pays, and what each end pays.

use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, Priority, Psn, QueuePairNumber, VirtualLane, VlanId};
use proto::wire::classify::classify;
use proto::wire::ethernet::{MacAddress, MacControl, Pfc, VlanTag};
use proto::wire::implied::PAYLOAD_KEPT;
use proto::wire::infiniband::{
    Bth, ExtendedHeaders, FlowControlOp, FlowControlPacket, Opcode, Packet, PacketBuilder, crc,
    relabel,
};
use proto::wire::internet::{Ipv4, Udp, mark_congestion};
use proto::wire::project::pattern;
use proto::wire::roce::{self, NetworkHeaders};
use std::hint::black_box;

const MTU: usize = 2048;

fn send(opcode: Opcode) -> PacketBuilder {
    let bth = Bth::new(opcode, QueuePairNumber::planned(0, Lid::new(1)), Psn::truncate(77));
    PacketBuilder { slid: Lid::new(1), dlid: Lid::new(2), ..PacketBuilder::new(bth) }
}

fn frame(payload: usize) -> BytesMut {
    let mut octets = BytesMut::new();
    send(Opcode::RC_SEND_ONLY)
        .emit(&mut octets, payload, |place| place.fill(0xa5))
        .expect("short enough");
    octets
}

/// What every hop pays.
fn hop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hop");
    let full = frame(MTU);
    group.throughput(Throughput::Elements(1));
    group.bench_function("classify 2048 B SEND", |b| {
        b.iter(|| classify(FrameKind::Infiniband, black_box(&full)));
    });
    group.bench_function("verify VCRC 2048 B", |b| b.iter(|| crc::verify_vcrc(black_box(&full))));
    let mut octets = full.clone();
    group.bench_function("set lane and FECN, refresh VCRC 2048 B", |b| {
        b.iter(|| {
            let octets = black_box(&mut octets);
            relabel::set_virtual_lane(octets, VirtualLane::truncate(3));
            relabel::set_fecn(octets);
            crc::refresh_vcrc(octets);
        });
    });
    let mut octets = full.clone();
    let mut lane = 0;
    group.bench_function("relabel 2048 B: lane changes", |b| {
        b.iter(|| {
            lane ^= 7;
            relabel::relabel(black_box(&mut octets), VirtualLane::truncate(lane), false)
        });
    });
    let mut octets = full.clone();
    group.bench_function("relabel 2048 B: lane and FECN change", |b| {
        b.iter(|| {
            lane ^= 7;
            octets[12] = 0;
            relabel::relabel(black_box(&mut octets), VirtualLane::truncate(lane), true)
        });
    });
    group.finish();
}

fn implied(builder: &PacketBuilder, mut octets: BytesMut, payload: usize) -> Frame {
    builder.emit_headers(&mut octets, payload, PAYLOAD_KEPT).expect("it fits");
    pattern::append(&mut octets, 0, PAYLOAD_KEPT);
    Frame::with_implied(FrameKind::Infiniband, octets, (payload - PAYLOAD_KEPT) as u16)
}

/// What the two ends pay besides.
fn end(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("end");
    let full = frame(MTU);
    group.bench_function("parse 2048 B SEND", |b| b.iter(|| Packet::parse(black_box(&full))));
    for payload in [0, 256, MTU] {
        let octets = frame(payload);
        group.throughput(Throughput::Bytes(octets.len() as u64));
        group.bench_function(format!("verify ICRC and VCRC {payload} B"), |b| {
            b.iter(|| (crc::verify_icrc(black_box(&octets)), crc::verify_vcrc(black_box(&octets))));
        });
        let builder = send(Opcode::RC_SEND_ONLY);
        let source = vec![0xa5; payload];
        let mut buffer = BytesMut::new();
        if payload > PAYLOAD_KEPT {
            group.bench_function(format!("emit {payload} B SEND, most of it implied"), |b| {
                b.iter(|| {
                    let octets = std::mem::take(&mut buffer);
                    buffer = implied(black_box(&builder), octets, payload).octets;
                });
            });
            let mut out = Vec::new();
            group.bench_function(format!("emit {payload} B SEND, implied and then made"), |b| {
                b.iter(|| {
                    let octets = std::mem::take(&mut buffer);
                    let frame = implied(black_box(&builder), octets, payload);
                    out.clear();
                    frame.append_to(&mut out);
                    buffer = frame.octets;
                });
            });
        }
        group.bench_function(format!("emit {payload} B SEND with both CRCs"), |b| {
            b.iter(|| {
                buffer.clear();
                let fill = |place: &mut [u8]| place.copy_from_slice(black_box(&source));
                black_box(&builder).emit(&mut buffer, payload, fill)
            });
        });
    }
    group.finish();
}

/// What the link's own packets cost.
fn link(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    let packet = FlowControlPacket {
        op: FlowControlOp::Normal,
        fctbs: 288,
        virtual_lane: VirtualLane::truncate(2),
        fccl: 1110,
    };
    let octets = packet.to_octets();
    group.throughput(Throughput::Elements(1));
    group.bench_function("FCP emit", |b| b.iter(|| black_box(&packet).to_octets()));
    group.bench_function("FCP parse", |b| {
        b.iter(|| FlowControlPacket::parse(black_box(&octets)));
    });
    group.finish();
}

fn roce_send() -> roce::PacketBuilder<'static> {
    let tag = VlanTag {
        priority: Priority::truncate(3),
        drop_eligible: false,
        id: VlanId::truncate(1),
        ethertype: 0,
    };
    roce::PacketBuilder {
        destination: MacAddress::from_number(2),
        source: MacAddress::from_number(1),
        tag: Some(tag),
        network: NetworkHeaders::Ipv4(Ipv4::default(), &[], Udp::roce(50_000)),
        bth: send(Opcode::RC_SEND_ONLY).bth,
        extended: ExtendedHeaders::NONE,
    }
}

/// What RoCEv2 costs hop by hop, and at both ends.
fn ethernet(criterion: &mut Criterion) {
    const PAYLOAD: usize = 1500;
    let mut group = criterion.benchmark_group("ethernet");
    let source = vec![0xa5; PAYLOAD];
    let fill = |place: &mut [u8]| place.copy_from_slice(black_box(&source));
    let mut full = BytesMut::new();
    roce_send().emit(&mut full, PAYLOAD, fill).expect("short enough");
    group.throughput(Throughput::Elements(1));
    group.bench_function("classify 1500 B SEND", |b| {
        b.iter(|| classify(FrameKind::Ethernet, black_box(&full)));
    });
    let mut octets = full.clone();
    group.bench_function("mark CE 1500 B", |b| {
        b.iter(|| {
            // ECT(0) again, under a checksum that is wrong by the same amount each time.
            octets[19] = 0x02;
            mark_congestion(black_box(&mut octets))
        });
    });
    group.bench_function("parse 1500 B SEND", |b| {
        b.iter(|| roce::Packet::parse(black_box(&full)));
    });
    let pfc = MacControl::Pfc(Pfc::default().with(Priority::truncate(3), 0xffff));
    let control = pfc.to_octets(MacAddress::from_number(1));
    group.bench_function("PFC emit", |b| {
        b.iter(|| black_box(&pfc).to_octets(MacAddress::from_number(1)));
    });
    group.bench_function("PFC parse", |b| b.iter(|| MacControl::parse(black_box(&control))));
    group.throughput(Throughput::Bytes(full.len() as u64));
    group.bench_function("verify ICRC 1500 B", |b| {
        b.iter(|| roce::checks::verify_icrc(black_box(&full)));
    });
    let mut buffer = BytesMut::new();
    group.bench_function("emit 1500 B SEND with all checks", |b| {
        b.iter(|| black_box(roce_send()).emit(&mut buffer, PAYLOAD, fill));
    });
    group.finish();
}

criterion_group!(benches, hop, end, link, ethernet);
criterion_main!(benches);
