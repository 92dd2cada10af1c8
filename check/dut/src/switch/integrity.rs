//! INT: a frame that passes leaves with the octets that it came with.

use super::{Scripts, Switch};
use crate::verdict::{Check, Verdict};
use bytes::BytesMut;
use proto::frame::{Frame, FrameKind};
use proto::ids::Ecn;
use proto::wire::ethernet::{EthernetHeader, MacAddress};
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use testbed::frames::congestion::with_flow;
use testbed::frames::ethernet::{frame, over_ipv6, readdressed, roce, tagged, with_dscp, with_ecn};

pub(super) const SCRIPTS: Scripts = &[
    ("INT-01", |switch| each_size(switch, false)),
    ("INT-02", |switch| each_size(switch, true)),
    ("INT-03", marked),
    ("INT-04", |switch| each_tag(switch, 0x8100, 100)),
    ("INT-05", |switch| each_tag(switch, 0x8100, 0)),
    ("INT-06", |switch| each_tag(switch, 0x88a8, 100)),
    ("INT-07", congestion_tag),
    ("INT-08", each_octet),
    ("INT-09", wrong_icrc),
    ("INT-10", length_field),
    ("INT-11", each_code_point),
];

/// Sends each frame from a known station at port 1 to one at port 2, where exactly it must come out.
fn pass(switch: &mut Switch<'_>, frames: impl Iterator<Item = (String, Frame)>) -> Check {
    let (a, b) = switch.pair()?;
    pass_between(switch, (a, b), frames)
}

fn pass_between(
    switch: &mut Switch<'_>,
    (a, b): (MacAddress, MacAddress),
    frames: impl Iterator<Item = (String, Frame)>,
) -> Check {
    let (mut count, mut deviation) = (0, None);
    for (what, frame) in frames {
        match switch.expect(&what, 1, &readdressed(frame, b, a), &[2]) {
            Err(fault) if fault.verdict == Verdict::Deviation => deviation = Some(fault),
            passed => passed?,
        }
        count += 1;
    }
    if let Some(fault) = deviation {
        return Err(fault);
    }
    Ok(format!("{count} frames left as they came"))
}

fn each_size(switch: &mut Switch<'_>, is_ipv6: bool) -> Check {
    let frames = [0, 1, 2, 3, 4, 64, 256, 1024].into_iter().map(|payload| {
        let builder = roce(1, 2, 3, payload as u32);
        let builder = if is_ipv6 { over_ipv6(&builder) } else { builder };
        let frame = frame(&builder, payload);
        // What goes in is right, so what comes out unaltered is.
        assert!(verify_icrc(&frame.octets).is_ok() && verify_checksums(&frame.octets).is_ok());
        (format!("RoCEv2 with {payload} octets"), frame)
    });
    pass(switch, frames.collect::<Vec<_>>().into_iter())
}

fn marked(switch: &mut Switch<'_>) -> Check {
    let frames = (0..16).map(|number| {
        let marked = with_ecn(&roce(1, 2, 3, number * 4099), Ecn::CongestionExperienced);
        (format!("CE, PSN {}", number * 4099), frame(&marked, 64 + number as usize))
    });
    pass(switch, frames)
}

/// A frame with a tag of this EtherType and control information before it.
fn with_tag(frame: Frame, tpid: u16, control: u16) -> Frame {
    let mut octets = BytesMut::from(&frame.octets[..12]);
    octets.extend_from_slice(&tpid.to_be_bytes());
    octets.extend_from_slice(&control.to_be_bytes());
    octets.extend_from_slice(&frame.octets[12..]);
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// Devices may learn by VLAN (IEEE 802.1Q, 8.8.8), so both stations are seen with the tag first.
fn each_tag(switch: &mut Switch<'_>, tpid: u16, vlan: u16) -> Check {
    let (a, b) = switch.pair()?;
    switch.teach_tagged((1, a), (2, b), &[tpid, vlan])?;
    let frames = (0..16u16).map(|bits| {
        let control = bits << 12 | vlan;
        let plain = frame(&roce(1, 2, 3, u32::from(bits)), 64);
        (format!("tag {tpid:04x} {control:04x}"), with_tag(plain, tpid, control))
    });
    pass_between(switch, (a, b), frames)
}

fn congestion_tag(switch: &mut Switch<'_>) -> Check {
    let frames = [1, 0x8000, 0xffff].into_iter().map(|flow| {
        let plain = tagged(frame(&roce(1, 2, 3, 0), 64), 3);
        (format!("flow {flow:04x}"), with_flow(plain, flow))
    });
    pass(switch, frames)
}

fn each_octet(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    let frames = (0..24).map(|number| {
        let length = 46 + number as usize * 43;
        (format!("payload of {length} octets"), switch.frame(b, a, length, number))
    });
    let frames: Vec<_> = frames.collect();
    for (what, frame) in &frames {
        switch.expect(what, 1, frame, &[2])?;
    }
    Ok(format!("{} frames left as they came", frames.len()))
}

fn wrong_icrc(switch: &mut Switch<'_>) -> Check {
    let frames = (0..4).map(|octet| {
        let mut wrong = frame(&roce(1, 2, 3, 7), 64);
        let at = wrong.octets.len() - 4 + octet;
        wrong.octets[at] ^= 1;
        (format!("octet {octet} of the ICRC"), wrong)
    });
    pass(switch, frames)
}

fn length_field(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    for length in [46u16, 47, 1000, 1500] {
        let mut frame = switch.frame(b, a, usize::from(length), 3);
        EthernetHeader { destination: b, source: a, ethertype: length }.emit(&mut frame.octets);
        switch.expect(&format!("length {length}"), 1, &frame, &[2])?;
    }
    Ok("4 frames with a length in place of the EtherType left as they came".to_owned())
}

fn each_code_point(switch: &mut Switch<'_>) -> Check {
    let codes = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced];
    let all = (0..64).step_by(9).flat_map(|dscp| codes.map(|ecn| (dscp, ecn)));
    let frames = all.map(|(dscp, ecn)| {
        let builder = with_dscp(&with_ecn(&roce(1, 2, 3, 9), ecn), dscp);
        (format!("DSCP {dscp}, {ecn:?}"), frame(&builder, 32))
    });
    pass(switch, frames)
}
