//! ENC-19: the checksum of an IPv4 header after a mark of congestion.

use crate::prelude::*;
use crate::samples::{hex, networks, roce_builder, roce_octets};
use proto::wire::infiniband::Opcode;
use proto::wire::internet::{checksum, mark_congestion};
use proto::wire::roce::checks::verify_icrc;

/// Where the IPv4 header stands in the frames here.
const HEADER: std::ops::Range<usize> = 14..34;

/// The checksum word by word, carries brought in at once: nothing shared with the product's.
fn checksum_by_hand(header: &[u8]) -> u16 {
    let mut sum = 0u16;
    for (at, word) in header.as_chunks::<2>().0.iter().enumerate().filter(|(at, _)| *at != 5) {
        let (next, carry) = sum.overflowing_add(u16::from_be_bytes(*word));
        sum = next + u16::from(carry);
        debug_assert!(at < 10, "a header without options has ten words");
    }
    !sum
}

/// ENC-19: ECT(0) and ECT(1) to CE, for each identification and so for each checksum.
pub fn checksum_after_the_mark(_: Level) -> Finding {
    let (_, network) = networks()[0];
    let frame = roce_octets(&roce_builder(Opcode::RC_SEND_ONLY, network), &[7; 16]);
    let mut seen = vec![false; 1 << 16];
    for ecn in [Ecn::Capable0, Ecn::Capable1] {
        for identification in 0..=u16::MAX {
            let mut frame = frame.clone();
            frame[15] = frame[15] & !3 | ecn.bits();
            frame[18..20].copy_from_slice(&identification.to_be_bytes());
            let right = checksum_by_hand(&frame[HEADER]);
            same("checksum", checksum::ipv4_header(&frame[HEADER]), right)?;
            check_mark(&frame, right)?;
            if right == 0 {
                check_mark(&frame, 0xffff)?;
            }
            seen[usize::from(right)] = true;
        }
    }
    let values = seen.iter().filter(|seen| **seen).count();
    same("checksums seen", values, 0xffff)?;
    mark_leaves_the_icrc(&frame)?;
    Ok(format!("{} headers with all {values} checksums, 0x0000 and 0xffff too", 2 << 16))
}

fn check_mark(frame: &[u8], carried: u16) -> Result<()> {
    let mut frame = frame.to_vec();
    frame[24..26].copy_from_slice(&carried.to_be_bytes());
    let mut expected = frame.clone();
    expected[15] |= 3;
    let right = checksum_by_hand(&expected[HEADER]);
    expected[24..26].copy_from_slice(&right.to_be_bytes());
    let marked = mark_congestion(&mut frame);
    ensure!(marked, "a header of {carried:#06x} is not marked");
    same("the header", hex(&frame), hex(&expected))
}

fn mark_leaves_the_icrc(frame: &[u8]) -> Result<()> {
    let mut frame = frame.to_vec();
    let marked = mark_congestion(&mut frame);
    ensure!(marked, "an ECT(0) packet was not marked");
    Ok(verify_icrc(&frame)?)
}
