//! L2: learning, flooding, ageing, order and sizes.

use super::{Scripts, Switch};
use crate::verdict::{Check, Fault, must};
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use proto::wire::ethernet::MacAddress;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const SCRIPTS: Scripts = &[
    ("L2-01", unknown),
    ("L2-02", |switch| group(switch, MacAddress::BROADCAST)),
    ("L2-03", |switch| group(switch, MacAddress::from_number(0x0100_5e7f_0001))),
    ("L2-04", known),
    ("L2-05", not_back),
    ("L2-06", same_port),
    ("L2-07", moves),
    ("L2-08", group_source),
    ("L2-09", ages),
    ("L2-10", table),
    ("L2-11", |switch| burst(switch, &[1])),
    ("L2-12", |switch| burst(switch, &[1, 3])),
    ("L2-13", smallest),
    ("L2-14", |switch| largest(switch, 0)),
    ("L2-15", |switch| largest(switch, 4)),
    ("L2-16", too_long),
    ("L2-17", refreshed),
];

fn unknown(switch: &mut Switch<'_>) -> Check {
    for port in 1..=switch.line.ports() {
        let (to, from) = (switch.station(100 + u16::from(port)), switch.station(u16::from(port)));
        let frame = switch.short(to, from);
        let others = switch.others(port);
        switch.expect("an unknown address", port, &frame, &others)?;
    }
    Ok("flooded to all other ports, from each port".to_owned())
}

fn group(switch: &mut Switch<'_>, to: MacAddress) -> Check {
    for port in 1..=switch.line.ports() {
        let frame = switch.short(to, switch.station(u16::from(port)));
        let others = switch.others(port);
        switch.expect(&to.to_string(), port, &frame, &others)?;
    }
    Ok("to all other ports, from each port".to_owned())
}

fn known(switch: &mut Switch<'_>) -> Check {
    let ports = switch.line.ports();
    for port in 1..=ports {
        switch.teach(port, switch.station(u16::from(port)))?;
    }
    for from in 1..=ports {
        for to in switch.others(from) {
            let [a, b] = [from, to].map(|port| switch.station(u16::from(port)));
            let frame = switch.short(b, a);
            switch.expect("a learned address", from, &frame, &[to])?;
        }
    }
    Ok(format!("{} directions between learned addresses", ports * (ports - 1)))
}

fn not_back(switch: &mut Switch<'_>) -> Check {
    let a = switch.station(1);
    for to in [MacAddress::BROADCAST, switch.station(99), a] {
        let frame = switch.short(to, a);
        let came = switch.copies(1, &frame, 0)?;
        must!(came.iter().all(|(port, _)| *port != 1), "a frame to {to} comes back by its port");
    }
    Ok("nothing comes back by the port it came in by".to_owned())
}

fn same_port(switch: &mut Switch<'_>) -> Check {
    let (a, b) = (switch.station(1), switch.station(2));
    switch.teach(1, a)?;
    switch.teach(1, b)?;
    let frame = switch.short(b, a);
    switch.expect("a station behind the same port", 1, &frame, &[])?;
    Ok("filtered".to_owned())
}

fn moves(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    let frame = switch.short(b, a);
    switch.expect("before it moves", 1, &frame, &[2])?;
    // Some devices apply a move later, and by chance not too late.
    const MOVES: usize = 10;
    for port in [3, 2].into_iter().cycle().take(MOVES) {
        switch.teach(port, b)?;
        switch.expect("after it has moved", 1, &frame, &[port])?;
    }
    Ok(format!("each frame goes where the station was seen last, over {MOVES} moves"))
}

fn group_source(switch: &mut Switch<'_>) -> Check {
    let source = MacAddress::from_number(switch.station(7).number() | 1 << 40);
    let frame = switch.short(MacAddress::BROADCAST, source);
    switch.line.send(2, &frame.octets)?;
    let until = switch.line.now() + switch.quiet();
    switch.line.wait(until, |_| false)?;
    switch.mark = switch.line.seen.len();
    let frame = switch.short(source, switch.station(1));
    let others = switch.others(1);
    switch.expect("a group address that was a source", 1, &frame, &others)?;
    Ok("a group address as source is not learned".to_owned())
}

fn ages(switch: &mut Switch<'_>) -> Check {
    let ageing = switch.file.tolerance.ageing;
    let ageing = ageing.ok_or_else(|| Fault::absent("the DUT file states no ageing time"))?;
    let (a, b) = switch.pair()?;
    let frame = switch.short(b, a);
    let half = switch.line.now() + Duration::from_ps(ageing.as_ps() / 2);
    switch.line.wait(half, |_| false)?;
    switch.expect("at half the ageing time", 1, &frame, &[2])?;
    // Entries may live up to twice as long where a timer looks at them now and then.
    let over = switch.line.now() + ageing * 2 + switch.quiet();
    switch.line.wait(over, |_| false)?;
    let others = switch.others(1);
    switch.expect("after twice the ageing time", 1, &frame, &others)?;
    Ok(format!("known at half of {} ms, flooded after twice of it", ageing.as_ps() / 1_000_000_000))
}

fn table(switch: &mut Switch<'_>) -> Check {
    const STATIONS: u16 = 512;
    for number in 0..STATIONS {
        let frame = switch.short(MacAddress::BROADCAST, switch.station(1000 + number));
        switch.line.send(2 + (number % 2) as u8, &frame.octets)?;
        if number % 64 == 63 {
            let until = switch.line.now() + switch.quiet();
            switch.line.wait(until, |_| false)?;
        }
    }
    switch.mark = switch.line.seen.len();
    let a = switch.station(1);
    for number in (0..STATIONS).step_by(37) {
        let frame = switch.short(switch.station(1000 + number), a);
        switch.expect(&format!("station {number}"), 1, &frame, &[2 + (number % 2) as u8])?;
    }
    Ok(format!("{STATIONS} addresses are known at once"))
}

/// Numbered frames, 60 µs apart, by each of `ports`, to a station at port 2.
fn burst(switch: &mut Switch<'_>, ports: &[u8]) -> Check {
    const FRAMES: u32 = 500;
    let to = switch.station(2);
    switch.teach(2, to)?;
    let every = Duration::from_us(60);
    let frames = |port: u8| {
        let from = switch.station(10 + u16::from(port));
        (0..FRAMES).map(|number| switch.frame(to, from, 200, number)).collect::<Arc<[Frame]>>()
    };
    let streams: Vec<(u8, Arc<[Frame]>)> =
        ports.iter().map(|port| (*port, frames(*port))).collect();
    switch.play(every * u64::from(FRAMES), |script| {
        for (port, frames) in streams {
            script.every(Instant::ZERO, every, u64::from(FRAMES), move |bed, number| {
                bed.send_frame(port, &frames[number as usize]);
            });
        }
    })?;
    let (mark, wanted) = (switch.mark, FRAMES as usize * ports.len());
    let until = switch.line.now() + switch.file.tolerance.patience;
    switch.line.wait(until, |seen| seen.len() - mark >= wanted)?;
    let mut last: BTreeMap<Vec<u8>, (u32, u32)> = BTreeMap::new();
    for seen in switch.line.seen[mark..].iter().filter(|seen| seen.port == 2) {
        let octets = &seen.frame.octets;
        let (Some(source), Some(number)) = (octets.get(6..12), octets.get(14..18)) else {
            continue;
        };
        let number = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
        let entry = last.entry(source.to_vec()).or_insert((0, 0));
        must!(
            number >= entry.0,
            "frame {number} comes again or behind {}",
            entry.0.wrapping_sub(1)
        );
        *entry = (number + 1, entry.1 + 1);
    }
    let came: u32 = last.values().map(|(_, count)| count).sum();
    if came as usize != wanted {
        return Err(Fault::unclear(format!("{came} of {wanted} frames came, all in order")));
    }
    Ok(format!("{wanted} frames in order, none twice"))
}

fn smallest(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    for payload in [46, 47, 48] {
        let frame = switch.frame(b, a, payload, 5);
        switch.expect(&format!("{} octets", 14 + payload), 1, &frame, &[2])?;
    }
    Ok("frames of 60, 61 and 62 octets without FCS pass".to_owned())
}

/// A frame with the largest payload, and `tag` octets of a tag before it.
fn largest(switch: &mut Switch<'_>, tag: usize) -> Check {
    let (a, b) = switch.pair()?;
    let mtu = switch.file.device.mtu.get() as usize;
    if tag > 0 {
        switch.teach_tagged((1, a), (2, b), &[0x8100, 0x6064])?;
    }
    for less in [1, 0] {
        let mut frame = switch.frame(b, a, mtu - less + tag, 6);
        if tag > 0 {
            frame.octets[12..18].copy_from_slice(&[0x81, 0, 0x60, 100, 0x88, 0xb5]);
        }
        switch.expect(&format!("{} octets of payload", mtu - less), 1, &frame, &[2])?;
    }
    Ok(format!("payloads of {} and {mtu} octets pass", mtu - 1))
}

fn too_long(switch: &mut Switch<'_>) -> Check {
    let (a, b) = switch.pair()?;
    let mtu = switch.file.device.mtu.get() as usize;
    let frame = switch.frame(b, a, mtu + 100, 6);
    let came = switch.copies(1, &frame, 0)?;
    if let Some((port, octets)) = came.first() {
        let whole = if octets[..] == frame.octets[..] { "whole" } else { "altered" };
        let text = format!("a payload of {} octets leaves by port {port}, {whole}", mtu + 100);
        must!(whole == "whole", "{text}");
        return Err(Fault::deviation(text));
    }
    switch.still_works()?;
    Ok(format!("a payload of {} octets is dropped", mtu + 100))
}

fn refreshed(switch: &mut Switch<'_>) -> Check {
    let a = switch.station(1);
    // A frame to an unknown address teaches its source as well.
    let frame = switch.short(switch.station(99), a);
    let others = switch.others(1);
    switch.expect("an unknown address", 1, &frame, &others)?;
    let back = switch.short(a, switch.station(2));
    switch.expect("the way back", 2, &back, &[1])?;
    Ok("the source of a flooded frame is learned".to_owned())
}
