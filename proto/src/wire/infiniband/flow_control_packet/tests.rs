//! Tests of flow control packets: all values, bit flips, lengths.

use super::*;
use crate::counters::DropReason;

/// ENC-13, with the counts stepped so that every bit of both takes both values.
#[test]
fn every_operation_and_lane_is_encoded_bit_for_bit() {
    for op in 0..16u8 {
        for lane in 0..16u8 {
            for count in (0..4096u16).step_by(13).chain([4095]) {
                let packet = FlowControlPacket {
                    op: FlowControlOp::from_bits(op),
                    fctbs: count,
                    virtual_lane: VirtualLane::truncate(lane),
                    fccl: 4095 - count,
                };
                let word = u32::from(op) << 28
                    | u32::from(count) << 16
                    | u32::from(lane) << 12
                    | u32::from(4095 - count);
                let octets = packet.to_octets();
                assert_eq!(octets[..4], word.to_be_bytes());
                assert_eq!(FlowControlPacket::parse(&octets), Ok(packet));
            }
        }
    }
}

#[test]
fn known_packets_have_the_lpcrc_of_other_tools() {
    let cases = [
        ([0x10, 0x00, 0x00, 0x80, 0x50, 0xd5], FlowControlOp::Init, 0, 0, 128),
        ([0x01, 0x20, 0x24, 0x56, 0x67, 0x27], FlowControlOp::Normal, 288, 2, 1110),
        ([0x0f, 0xfd, 0xe7, 0xfd, 0xbf, 0xee], FlowControlOp::Normal, 4093, 14, 2045),
        ([0x00, 0x00, 0x00, 0x00, 0xb3, 0x62], FlowControlOp::Normal, 0, 0, 0),
    ];
    for (octets, op, fctbs, lane, fccl) in cases {
        let virtual_lane = VirtualLane::truncate(lane);
        let packet = FlowControlPacket { op, fctbs, virtual_lane, fccl };
        assert_eq!(packet.to_octets(), octets);
        assert_eq!(FlowControlPacket::parse(&octets), Ok(packet));
    }
}

#[test]
fn counts_beyond_twelve_bits_wrap() {
    let packet = FlowControlPacket {
        op: FlowControlOp::Normal,
        fctbs: 4096 + 7,
        virtual_lane: VirtualLane::ZERO,
        fccl: 0xffff,
    };
    let read = FlowControlPacket::parse(&packet.to_octets()).expect("the LPCRC is valid");
    assert_eq!((read.fctbs, read.fccl), (7, 4095));
}

#[test]
fn only_the_lpcrc_detects_flipped_bits() {
    let octets = [0x01, 0x20, 0x24, 0x56, 0x67, 0x27];
    for bit in 0..48 {
        let mut damaged = octets;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let refused = FlowControlPacket::parse(&damaged).expect_err("one bit differs");
        assert_eq!((refused.layer, refused.offset), ("LPCRC", 4));
        assert_eq!(refused.drop_reason(), DropReason::Lpcrc);
        assert!(FlowControlPacket::parse_intact(&damaged).is_ok());
    }
}

#[test]
fn any_other_length_is_refused_outside_the_end_to_end_balance() {
    let octets = [0u8; 70];
    for present in (0..FlowControlPacket::LEN).chain(FlowControlPacket::LEN + 1..70) {
        let refused = FlowControlPacket::parse(&octets[..present]).expect_err("not six octets");
        assert_eq!((refused.layer, refused.offset), ("FCP", 0));
        assert!(!refused.drop_reason().is_end_to_end());
    }
}
