//! PFC-06 to PFC-08, PFC-16 to PFC-18: what is not obeyed, not forwarded, or no PFC at all.

use super::{FOUR, blocked, send};
use crate::bench::Bench;
use crate::bench::devices::RATE;
use crate::bench::devices::ethernet::{FRAME_TIME, LOSSLESS, switch};
use crate::bench::packets::ethernet::{PEER, control, damaged, data, pause, pfc, tag};
use crate::case::{Failure, Finding, ensure, same};
use proto::frame::Frame;
use proto::ids::Lid;
use proto::units::Duration;
use proto::wire::ethernet::{Envelope, EthernetHeader, MacAddress, MacControl, Pfc, plan};
use switchd::switch::Switch;

/// How many frames of MAC control a storm has.
const STORM: u64 = 100;

/// A line full of frames of `priorities` in turn goes through to port 4 while its neighbour says
/// `what` again and again; the bench afterwards.
fn unmoved(priorities: &[u8], what: &Frame) -> Result<Bench<Switch>, Failure> {
    let made = Switch::new(switch(FOUR)).map_err(|error| error.to_string())?;
    let mut bench = Bench::ethernet(made);
    let before = bench.reading();
    for turn in 0..STORM {
        bench.inject(FOUR, what.clone());
        let frames = priorities.iter().map(|priority| data(1, 4, *priority, turn as u32));
        bench.stream(1, bench.now(), RATE, frames);
        bench.run_for(FRAME_TIME * priorities.len() as u64);
    }
    bench.run_for(FRAME_TIME);
    let sent = STORM * priorities.len() as u64;
    same("frames that went through", bench.packets(FOUR).count() as u64, sent)?;
    let last = bench.packets(FOUR).last().map_or(bench.now(), |sent| sent.at);
    same("the last of them was late by", bench.now().since(last), Duration::ZERO)?;
    bench.nothing_lost(&before)?;
    Ok(bench)
}

/// PFC-06.
pub fn lossy_is_deaf() -> Finding {
    let mut bench = unmoved(&[1], &pfc(1 << 1, u16::MAX))?;
    same("rx_prio1_pause", bench.named(FOUR, "rx_prio1_pause"), STORM)?;
    same("rx_prio1_pause_duration", bench.named(FOUR, "rx_prio1_pause_duration"), 0)?;
    Ok(format!("priority 1 goes on at line rate; {STORM} frames of PFC counted for it"))
}

/// PFC-07.
pub fn pause_is_ignored() -> Finding {
    let mut bench = unmoved(&[0, 1, 2, 3, 4, 5, 6, 7], &pause(u16::MAX))?;
    same("rx_global_pause", bench.named(FOUR, "rx_global_pause"), STORM)?;
    same("rx_pfc", bench.named(FOUR, "rx_pfc"), 0)?;
    Ok(format!("all priorities go on at line rate; {STORM} frames of PAUSE counted apart"))
}

/// PFC-08.
pub fn empty_vector() -> Finding {
    let times = [u16::MAX; 8];
    let empty = control(MacControl::Pfc(Pfc { reserved: 0, enabled: 0, times }));
    let mut bench = unmoved(&[LOSSLESS], &empty)?;
    same("rx_pfc", bench.named(FOUR, "rx_pfc"), STORM)?;
    for priority in 0..8 {
        let name = format!("rx_prio{priority}_pause");
        same(&name, bench.named(FOUR, &name), 0)?;
    }
    Ok(format!("{STORM} frames counted as PFC, none as pause of a priority, none dropped"))
}

/// `frame` with other addresses.
fn readdressed(mut frame: Frame, to: MacAddress, from: MacAddress) -> Frame {
    let header = EthernetHeader::parse(&frame.octets).expect("it is a whole frame");
    EthernetHeader { destination: to, source: from, ..header }.emit(&mut frame.octets);
    frame
}

/// Whether port 4 holds back priority 3 once `frame` has reached it; and why it was dropped.
fn holds_back(frame: Frame) -> Result<(bool, String), Failure> {
    let made = Switch::new(switch(FOUR)).map_err(|error| error.to_string())?;
    let mut bench = Bench::ethernet(made);
    let before = bench.reading();
    bench.inject(FOUR, frame);
    send(&mut bench, 1, LOSSLESS, 1);
    bench.run_for(FRAME_TIME * 4);
    let held = bench.data(FOUR, LOSSLESS).count() == 0;
    for port in 1..FOUR {
        same(format!("frames out of port {port}"), bench.line(port).count(), 0)?;
    }
    let lost = bench.lost_since(&before, FOUR);
    Ok((held, lost))
}

/// PFC-16: to the group, to the port, to others, to everybody; each kind of MAC control.
pub fn never_forwarded() -> Finding {
    let port = plan::mac(Lid::new(100 + u16::from(FOUR)));
    let others = [plan::mac(Lid::new(3)), MacAddress::from_number((1 << 48) - 1)];
    let said = pfc(1 << LOSSLESS, u16::MAX);
    for own in [MacAddress::MAC_CONTROL, port] {
        let (held, lost) = holds_back(readdressed(said.clone(), own, PEER))?;
        ensure(held, || format!("PFC to {own} was not obeyed"))?;
        same(format!("what PFC to {own} was dropped for"), lost, "nothing".to_owned())?;
    }
    for other in others {
        let (held, lost) = holds_back(readdressed(said.clone(), other, PEER))?;
        ensure(!held, || format!("PFC to {other} was obeyed"))?;
        same(format!("losses of PFC to {other}"), lost, "mac_control_address 1".to_owned())?;
    }
    let made = Switch::new(switch(FOUR)).map_err(|error| error.to_string())?;
    let mut bench = Bench::ethernet(made);
    for what in [said, pause(9), control(MacControl::Unknown(0x0102))] {
        for port in 1..=FOUR {
            for to in [MacAddress::MAC_CONTROL, others[0], others[1]] {
                bench.inject(port, readdressed(what.clone(), to, PEER));
            }
        }
    }
    bench.run_for(Duration::from_us(1_000));
    let copies: usize = (1..=FOUR).map(|port| bench.line(port).count()).sum();
    same("frames out of any port", copies, 0)?;
    Ok("obeyed when for the group or the port, dropped with its reason when for others; 0 of 36 frames \
        of MAC control go on"
        .to_owned())
}

/// PFC-17.
pub fn any_source() -> Finding {
    let sources = [0, 0x0200_0000_f00d, 0x0180_c200_0001, (1 << 48) - 1];
    for source in sources.map(MacAddress::from_number) {
        let frame = readdressed(pfc(1 << LOSSLESS, 9_999), MacAddress::MAC_CONTROL, source);
        let (held, lost) = holds_back(frame)?;
        ensure(held, || format!("PFC from {source} was not obeyed"))?;
        same(format!("losses of PFC from {source}"), lost, "nothing".to_owned())?;
    }
    Ok("obeyed from address zero, a valid one, a group and all ones".to_owned())
}

/// PFC-18.
pub fn malformed() -> Finding {
    let good = || pfc(1 << LOSSLESS, u16::MAX);
    let short = {
        let mut frame = good();
        frame.octets.truncate(59);
        frame
    };
    let tagged = {
        let mut frame = good();
        let parameters = frame.octets.split_off(EthernetHeader::LEN);
        let envelope = Envelope::parse(&frame.octets).map_err(|error| error.to_string())?;
        let envelope = envelope.tagged(tag(LOSSLESS));
        frame.octets.resize(envelope.octets_len(), 0);
        envelope.emit(&mut frame.octets);
        frame.octets.unsplit(parameters);
        frame
    };
    let opcode = {
        let mut frame = good();
        frame.octets[15] = 0x77;
        frame
    };
    for (what, frame, reason) in [
        ("short", short, "mac_control_length 1"),
        ("tagged", tagged, "mac_control_tag 1"),
        ("of an unknown opcode", opcode, "mac_control_opcode 1"),
        ("with a bad FCS", damaged(good()), "mac_control_aborted 1"),
    ] {
        let (held, lost) = holds_back(frame)?;
        ensure(!held, || format!("PFC {what} was obeyed"))?;
        same(format!("losses of PFC {what}"), lost, reason.to_owned())?;
    }
    let times = [u16::MAX; 8];
    let above = Pfc { reserved: 0xff, enabled: 1 << LOSSLESS, times };
    let (held, lost) = holds_back(control(MacControl::Pfc(above)))?;
    ensure(held, || "PFC with reserved bits was not obeyed".to_owned())?;
    same("what reserved bits are counted as", lost, "pfc_vector 1".to_owned())?;
    blocked(switch(FOUR), LOSSLESS)?;
    Ok("short, tagged, damaged and of an unknown opcode: dropped, each for its own reason, no pause; \
        reserved bits counted and ignored"
        .to_owned())
}
