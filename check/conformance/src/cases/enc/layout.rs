//! ENC-07, ENC-12, ENC-13, ENC-14: where each field lies, and what lengths say.

use crate::cases::ibcc::returns::bench;
use crate::prelude::*;
use crate::samples::{builder, crc16, hex, local, octets};
use proto::ids::ServiceLevel;
use proto::wire::infiniband::{
    FlowControlOp, FlowControlPacket, LinkNextHeader, Lrh, Opcode, Packet, crc,
};
use testbed::frames::infiniband::Packet as Sent;
use testbed::frames::raw;

/// ENC-07: the CN packet that a NIC answers a marked UC packet with, and those it takes.
pub fn native_congestion_notification(_: Level) -> Finding {
    let with_body = answer_to_a_marked_packet("reserved16")?;
    // VL 0, SL 0, LNH 2, DLID 2, PktLen 10, SLID 1; opcode 0x80, default partition, B, PSN 0.
    let headers = [
        0x00, 0x02, 0x00, 0x02, 0x00, 0x0a, 0x00, 0x01, 0x80, 0x00, 0xff, 0xff, 0x40, 0x01, 0x00,
        0x01, 0x00, 0x00, 0x00, 0x00,
    ];
    let expected = [&headers[..], &[0; 16]].concat();
    same("the CN packet", hex(&with_body[..with_body.len() - 6]), hex(&expected))?;
    same("octets of the CN packet", with_body.len(), 42)?;
    let without = answer_to_a_marked_packet("none")?;
    same("octets without body", without.len(), 26)?;
    same("PktLen without body", without[5], 6)?;
    for octets in [&with_body, &without] {
        crc::verify_icrc(octets)?;
        crc::verify_vcrc(octets)?;
    }
    for length in [0, 16] {
        accepts_notification(length)?;
    }
    Ok("PktLen 10 (6 with cnp_body none), B 1, F 0, 16 zero octets; 0 and 16 are accepted".into())
}

/// A NIC of UC whose notifications have this body.
fn adapter(body: &str) -> Result<Bench> {
    bench(&format!("cnp_body = \"{body}\""), "", "transport = \"uc\"")
}

/// What NIC 1 sends to NIC 2 upon a UC SEND with FECN from there.
fn answer_to_a_marked_packet(body: &str) -> Result<Vec<u8>> {
    let mut bench = adapter(body)?;
    bench.inject(1, Sent { fecn: true, ..unreliable() }.frame());
    bench.run_for(Duration::from_us(10));
    let answers: Vec<_> = bench.packets(1).map(|sent| sent.frame.octets.to_vec()).collect();
    same("packets sent upon one marked packet", answers.len(), 1)?;
    Ok(answers.into_iter().next().unwrap_or_default())
}

fn unreliable() -> Sent {
    Sent { opcode: Opcode::UC_SEND_ONLY, payload: 64, ..Sent::new(2, 1, 0) }
}

/// A CN packet with so many octets reaches the reaction point.
fn accepts_notification(length: usize) -> Result<()> {
    let mut bench = adapter("reserved16")?;
    bench.inject(1, unreliable().frame());
    let before = bench.reading();
    let mut cnp = Sent { payload: length, ack: false, ..Sent::cnp(2, 1) }.octets();
    cnp[20..20 + length].fill(0);
    crc::refresh_both(&mut cnp);
    bench.inject(1, raw(FrameKind::Infiniband, &cnp));
    same("losses", bench.lost_since(&before, 1), "nothing")?;
    let handled = bench.named(1, "rp_cnp_handled");
    same(format!("CN packets with {length} octets handled"), handled, 1)
}

/// ENC-12: the LRH bit by bit, for all extremes and all lengths.
pub fn lrh_packing(_: Level) -> Finding {
    let mut headers = 0;
    let lengths = [5, 6, 0x3ff, 0x400, Lrh::PACKET_LENGTH_MAX];
    let lids = [0, 1, 0xbfff, 0xc000, 0xffff];
    for lane in 0..16 {
        for level in 0..16 {
            for next in 0..4 {
                for (index, dlid) in lids.iter().enumerate() {
                    let slid = lids[lids.len() - 1 - index];
                    for length in lengths {
                        check_lrh(lane, level, next, *dlid, length, slid)?;
                        headers += 1;
                    }
                }
            }
        }
    }
    for length in 5..=Lrh::PACKET_LENGTH_MAX {
        check_lrh(7, 9, 2, 0x1234, length, 0x4321)?;
        headers += 1;
    }
    reserved_bits_of_lrh_are_ignored()?;
    Ok(format!("{headers} headers bit by bit; reserved bits sent as 0 and ignored"))
}

fn check_lrh(vl: u8, sl: u8, next: u8, dlid: u16, length: u16, slid: u16) -> Result<()> {
    let lrh = Lrh {
        virtual_lane: VirtualLane::truncate(vl),
        service_level: ServiceLevel::truncate(sl),
        next_header: LinkNextHeader::from_bits(next),
        dlid: Lid::new(dlid),
        packet_length: length,
        slid: Lid::new(slid),
        ..Lrh::default()
    };
    let number = u64::from(vl) << 60
        | u64::from(sl) << 52
        | u64::from(next) << 48
        | u64::from(dlid) << 32
        | u64::from(length) << 16
        | u64::from(slid);
    let written = lrh.to_octets();
    ensure!(written == number.to_be_bytes(), "{lrh:?} is written as {written:02x?}");
    let read = Lrh::parse(&written)?;
    ensure!(read == lrh, "{lrh:?} is read back as {read:?}");
    Ok(())
}

/// What a receiver makes of a packet does not depend on the reserved bits of its LRH.
fn reserved_bits_of_lrh_are_ignored() -> Result<()> {
    let clean = octets(&builder(Opcode::RC_SEND_ONLY, false), &[1, 2, 3, 4]);
    same("reserved bits as sent", clean[1] & 0x0c | clean[4] & 0xf8, 0)?;
    let expected = classify(FrameKind::Infiniband, &clean)?;
    for (octet, bits) in
        [(1, 0x04), (1, 0x08), (4, 0x08), (4, 0x10), (4, 0x20), (4, 0x40), (4, 0x80)]
    {
        let mut dirty = clean.clone();
        dirty[octet] |= bits;
        let found = classify(FrameKind::Infiniband, &dirty)?;
        ensure!(found == expected, "bit {bits:#x} of octet {octet} changes {found:?}");
    }
    Ok(())
}

/// ENC-13: every value of each field of a link packet, and its LPCRC bit by bit.
pub fn link_packet_layout(_: Level) -> Finding {
    let mut packets = 0;
    for op in 0..2u8 {
        for lane in 0..15u8 {
            for count in 0..4096u16 {
                // Two partners for every count, so that neither field is a function of the other.
                for partner in [count ^ 0xfff, count.wrapping_mul(1_237) & 0xfff] {
                    check_link_packet(op, count, lane, partner)?;
                    packets += 1;
                }
            }
        }
    }
    let octets = FlowControlPacket {
        op: FlowControlOp::Normal,
        fctbs: 0x123,
        virtual_lane: VirtualLane::truncate(4),
        fccl: 0x567,
    }
    .to_octets();
    for bit in 0..48 {
        let mut flipped = octets;
        flipped[bit / 8] ^= 0x80 >> (bit % 8);
        ensure!(FlowControlPacket::parse(&flipped).is_err(), "bit {bit} flipped is accepted");
    }
    Ok(format!("{packets} link packets bit by bit; each of 48 flipped bits is refused"))
}

fn check_link_packet(op: u8, fctbs: u16, lane: u8, fccl: u16) -> Result<()> {
    let packet = FlowControlPacket {
        op: FlowControlOp::from_bits(op),
        fctbs,
        virtual_lane: VirtualLane::truncate(lane),
        fccl,
    };
    let number =
        u32::from(op) << 28 | u32::from(fctbs) << 16 | u32::from(lane) << 12 | u32::from(fccl);
    let covered = number.to_be_bytes();
    let expected = [&covered[..], &crc16(&covered).to_le_bytes()].concat();
    let written = packet.to_octets();
    ensure!(written[..] == expected, "{packet:?} is written as {written:02x?}");
    let read = FlowControlPacket::parse(&written)?;
    ensure!(read == packet, "{packet:?} is read back as {read:?}");
    Ok(())
}

/// ENC-14: PktLen, PadCnt and PayLen of every payload size from 0 to 4096.
pub fn packet_length_and_padding(_: Level) -> Finding {
    let kinds = [
        (Opcode::RC_SEND_ONLY, 0, 4096),
        (Opcode::RC_WRITE_ONLY, 16, 4096),
        // An acknowledgement has no payload.
        (Opcode::RC_ACKNOWLEDGE, 4, 0),
    ];
    let payload = [0xa5; 4096];
    let mut packets = 0;
    for (opcode, extended, largest) in kinds {
        for global in [false, true] {
            for size in 0..=largest {
                let octets = octets(&builder(opcode, global), &payload[..size]);
                check_lengths(&octets, opcode, extended, global, &payload[..size])?;
                packets += 1;
            }
        }
    }
    let sample = local();
    same("PktLen of the sample", u16::from_be_bytes([sample[4], sample[5]]), 0x00e)?;
    same("PktLen of the sample in octets", 0x00e * 4 + 2, sample.len())?;
    Ok(format!("{packets} packets, with and without GRH; the sample's PktLen is 0x00e"))
}

fn check_lengths(
    octets: &[u8],
    opcode: Opcode,
    extended: usize,
    global: bool,
    payload: &[u8],
) -> Result<()> {
    let pad = (4 - payload.len() % 4) % 4;
    let after_grh = 12 + extended + payload.len() + pad + 4;
    let before = if global { 48 } else { 8 };
    let what = |field: &str| format!("{field} of {opcode} with {} octets", payload.len());
    same(what("size"), octets.len(), before + after_grh + 2)?;
    let word = u16::from_be_bytes([octets[4], octets[5]]);
    same(what("PktLen"), usize::from(word), (before + after_grh) / 4)?;
    if global {
        same(what("PayLen"), usize::from(u16::from_be_bytes([octets[12], octets[13]])), after_grh)?;
    }
    same(what("PadCnt"), usize::from(octets[before + 1] >> 4 & 3), pad)?;
    let packet = Packet::parse(octets)?;
    ensure!(packet.payload == payload, "{} is not read back", what("payload"));
    Ok(())
}
