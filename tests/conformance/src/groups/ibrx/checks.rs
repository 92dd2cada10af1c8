//! IBRX-03, IBRX-04, IBRX-05: lengths and lanes that a port does not take.

use super::{adapter, adapter_config, fresh_switch, good_packet_still_passes};
use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, MTU, link};
use crate::bench::packets::{altered, frame, send_only};
use crate::case::{Failure, Finding, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Device;
use proto::frame::Frame;
use proto::ids::VirtualLane;
use proto::wire::infiniband::PacketBuilder;

/// `frame` arrives and is lost at port 1 for `reason`; nothing leaves by `out`.
fn is_lost<D: Device>(
    bench: &mut Bench<D>,
    frame: Frame,
    out: u8,
    reason: &str,
    what: &str,
) -> Result<(), Failure> {
    let before = bench.reading();
    let packets = bench.packets(out).count();
    bench.send(1, frame);
    bench.run_for(FRAME_TIME);
    same(format!("losses upon {what}"), bench.lost_since(&before, 1), format!("{reason} 1"))?;
    same(format!("packets out upon {what}"), bench.packets(out).count() - packets, 0)
}

/// The same for a switch (out of port 3) and a NIC.
fn is_lost_everywhere(frames: &[(String, Frame)], lanes: u8, reason: &str) -> Result<(), Failure> {
    let mut bench = fresh_switch(lanes)?;
    for (what, frame) in frames {
        is_lost(&mut bench, frame.clone(), 3, reason, what)?;
    }
    good_packet_still_passes(&mut bench)?;
    let mut config = adapter_config(3, Transport::Rc);
    config.link = link(lanes);
    let nic = Nic::new(config).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(nic, lanes)?;
    for (what, frame) in frames {
        is_lost(&mut bench, frame.clone(), 1, reason, what)?;
    }
    Ok(())
}

/// A packet whose PktLen says `words`, its CRCs made to fit.
fn claiming(words: u16, payload: usize) -> Frame {
    altered(frame(&send_only(1, 3, 0), payload), |octets| {
        octets[4] = octets[4] & 0xf8 | (words >> 8) as u8;
        octets[5] = words as u8;
    })
}

/// IBRX-03: PktLen that is not the length, and a length that no packet has.
pub fn packet_length_disagrees() -> Finding {
    let mut frames = Vec::new();
    for payload in [0, 256, MTU] {
        let true_words = ((8 + 12 + payload + 4) / 4) as u16;
        for words in [true_words - 1, true_words + 1, 0, 5, 0x7ff] {
            let what = format!("PktLen {words} instead of {true_words}");
            frames.push((what, claiming(words, payload)));
        }
    }
    // One word less than a BTH needs, and PktLen agrees.
    let mut short = frame(&send_only(1, 3, 0), 0);
    short.octets.truncate(22);
    let short = altered(short, |octets| octets[5] = 5);
    frames.push(("a packet of five words".to_owned(), short));
    is_lost_everywhere(&frames, 1, "pktlen")?;
    Ok(format!("{} packets with wrong lengths, each pktlen 1 at switch and NIC", frames.len()))
}

/// IBRX-04: one word more than the MTU is too much, the MTU is not.
pub fn payload_above_mtu() -> Finding {
    let frames: Vec<_> = [MTU + 1, MTU + 4, 4096]
        .map(|size| (format!("{size} octets of payload"), frame(&send_only(1, 3, 0), size)))
        .into();
    is_lost_everywhere(&frames, 1, "mtu")?;
    let mut bench = adapter(3, Transport::Rc)?;
    let before = bench.reading();
    bench.send(1, frame(&send_only(1, 3, 0), MTU));
    bench.run_for(FRAME_TIME);
    same("losses upon exactly the MTU", bench.lost_since(&before, 1), "nothing".to_owned())?;
    same("answers to exactly the MTU", bench.packets(1).count(), 1)?;
    Ok(format!("{}, {} and 4096 octets: mtu 1 each; {MTU} pass switch and NIC", MTU + 1, MTU + 4))
}

/// IBRX-05: of two lanes, all others up to 14; and raw packets on VL15.
pub fn lane_not_operational() -> Finding {
    let mut frames = Vec::new();
    for lane in 2..15 {
        let virtual_lane = VirtualLane::truncate(lane);
        let builder = PacketBuilder { virtual_lane, ..send_only(1, 3, 0) };
        frames.push((format!("VL {lane}"), frame(&builder, 256)));
    }
    let virtual_lane = VirtualLane::MANAGEMENT;
    let managed = PacketBuilder { virtual_lane, ..send_only(1, 3, 0) };
    for next in 0..2 {
        let raw = altered(frame(&managed, 256), |octets| octets[1] = octets[1] & !0b11 | next);
        frames.push((format!("VL15 with LNH {next}"), raw));
    }
    is_lost_everywhere(&frames, 2, "vl")?;
    Ok("VL 2 to 14 of two, and VL15 with LNH 0 and 1: vl 1 each at switch and NIC".to_owned())
}
