//! Faults of switches, made by a relay before our own switch. Names are those of `faults.toml`.

use super::relay::{Editor, Sends, State, Way, unaltered};
use proto::wire::roce::Layout;

/// The faults by name.
pub const FAULTS: [(&str, Editor); 25] = [
    ("icrc-rewritten", |state, way, port, mut frame, sends| {
        if let (Way::Out, Ok(Some(layout))) = (way, Layout::find(&frame)) {
            let at = layout.icrc_at();
            frame[at..at + 4].fill(0);
        }
        unaltered(state, way, port, frame, sends);
    }),
    ("hop-limit-taken", |_, way, port, frame, sends| {
        leave(way, port, frame, sends, 0x86dd, |frame| frame[21] -= 1);
    }),
    ("ce-checksum-stale", |_, way, port, frame, sends| {
        leave(way, port, frame, sends, 0x0800, |frame| {
            if frame[15] & 3 == 3 {
                frame[15] &= !3;
            }
        });
    }),
    ("pcp-cleared", |_, way, port, frame, sends| {
        leave(way, port, frame, sends, 0x8100, |frame| frame[14] &= 0x1f);
    }),
    ("priority-tag-stripped", |_, way, port, frame, sends| {
        leave(way, port, frame, sends, 0x8100, |frame| {
            if frame[14] & 0x0f == 0 && frame[15] == 0 {
                frame.drain(12..16);
            }
        });
    }),
    ("cn-tag-stripped", |_, way, port, frame, sends| {
        leave(way, port, frame, sends, 0x8100, |frame| {
            if frame[16..18] == [0x22, 0xe9] {
                frame.drain(16..20);
            }
        });
    }),
    ("padded", |state, way, port, mut frame, sends| {
        if way == Way::Out && frame.len() % 2 == 1 {
            frame.push(0);
        }
        unaltered(state, way, port, frame, sends);
    }),
    ("flood-to-ingress", |state, way, port, frame, sends| {
        learn(state, way, port, &frame, true);
        if way == Way::In && is_flooded(state, &frame) {
            sends.push((Way::Out, port, frame.clone()));
        }
        unaltered(state, way, port, frame, sends);
    }),
    ("flood-misses-last", |state, way, port, frame, sends| {
        learn(state, way, port, &frame, true);
        if way == Way::In || port != state.ports || !is_flooded(state, &frame) {
            unaltered(state, way, port, frame, sends);
        }
    }),
    ("never-learns", |state, way, port, frame, sends| {
        if way == Way::In && !is_group(&frame) {
            return to_others(state, port, &frame, sends);
        }
        unaltered(state, way, port, frame, sends);
    }),
    ("never-moves", |state, way, port, frame, sends| {
        learn(state, way, port, &frame, false);
        by_table(state, way, port, frame, sends);
    }),
    ("learns-groups", |state, way, port, frame, sends| {
        if way == Way::In && frame[6] & 1 == 1 {
            learn(state, way, port, &frame, true);
        }
        match state.known.get(&frame[..6]) {
            Some(known) if way == Way::In => sends.push((Way::Out, *known, frame)),
            _ => unaltered(state, way, port, frame, sends),
        }
    }),
    ("never-ages", |state, way, port, frame, sends| {
        learn(state, way, port, &frame, true);
        by_table(state, way, port, frame, sends);
    }),
    ("pause-forwarded", |state, way, port, frame, sends| {
        forwards(state, way, port, frame, sends, 1)
    }),
    ("lldp-forwarded", |state, way, port, frame, sends| {
        forwards(state, way, port, frame, sends, 0x0e);
    }),
    ("pfc-all", |_, way, port, frame, sends| {
        pfc(way, port, frame, sends, |vector, times| {
            let longest = (0..8).filter(|n| *vector >> n & 1 == 1).map(|n| times[n]).max();
            (*vector, *times) = (0xff, [longest.unwrap_or(0); 8]);
        });
    }),
    ("pfc-vector-ignored", |_, way, port, frame, sends| {
        pfc(way, port, frame, sends, |vector, times| {
            *vector |= (0..8).filter(|n| times[*n] > 0).fold(0, |bits, n| bits | 1 << n);
        });
    }),
    ("quanta-unit", |state, way, port, mut frame, sends| {
        if way == Way::In && frame[12..16] == [0x88, 0x08, 0, 1] {
            let time = u16::from_be_bytes([frame[16], frame[17]]) / 8;
            frame[16..18].copy_from_slice(&time.to_be_bytes());
            return unaltered(state, way, port, frame, sends);
        }
        pfc(way, port, frame, sends, |_, times| *times = times.map(|time| time / 8));
    }),
    ("xon-ignored", |state, way, port, frame, sends| {
        let is_xon = frame[12..16] == [0x88, 0x08, 0, 1] && frame[16..18] == [0, 0]
            || frame[12..16] == [0x88, 0x08, 1, 1] && frame[18..34].iter().all(|octet| *octet == 0);
        if way == Way::Out || !is_xon {
            unaltered(state, way, port, frame, sends);
        }
    }),
    ("reorders", |state, way, port, frame, sends| {
        let count = state.counts.entry(port).or_default();
        *count += u32::from(way == Way::Out);
        if way == Way::Out && *count % 10 == 0 {
            state.held.insert(port, frame);
            return;
        }
        sends.push((way, port, frame));
        if way == Way::Out
            && let Some(late) = state.held.remove(&port)
        {
            sends.push((way, port, late));
        }
    }),
    ("bursts", |state, way, port, frame, sends| {
        if way == Way::In || is_group(&frame) || frame.len() < 900 {
            return unaltered(state, way, port, frame, sends);
        }
        let burst = state.bursts.entry(port).or_default();
        burst.push(frame);
        if burst.len() == 64 {
            sends.extend(burst.drain(..).map(|frame| (way, port, frame)));
        }
    }),
    ("pause-late", |state, way, port, frame, sends| {
        let is_pfc = way == Way::In && frame[12..16] == [0x88, 0x08, 1, 1];
        let stops = is_pfc && frame[18..34].iter().any(|octet| *octet != 0);
        if stops && !state.held.contains_key(&port) {
            state.counts.insert(port, 0);
            state.held.insert(port, frame);
            return;
        }
        let count = state.counts.entry(port).or_default();
        *count += u32::from(way == Way::Out);
        if (is_pfc || *count == 128)
            && let Some(pause) = state.held.remove(&port)
        {
            sends.push((Way::In, port, pause));
        }
        unaltered(state, way, port, frame, sends);
    }),
    ("frame-lost", |state, way, port, frame, sends| {
        let count = state.counts.entry(port).or_default();
        *count += u32::from(way == Way::Out && !is_group(&frame));
        if way == Way::In || is_group(&frame) || *count % 100 != 0 {
            unaltered(state, way, port, frame, sends);
        }
    }),
    ("flow-reordered", |state, way, port, frame, sends| {
        if way == Way::In || frame[12..14] != [8, 0] {
            return unaltered(state, way, port, frame, sends);
        }
        let source = station(&frame[6..]);
        let held = state.stations.remove(&source);
        if held.is_none() && frame.last().is_some_and(|octet| octet % 8 == 0) {
            state.stations.insert(source, frame);
            return;
        }
        unaltered(state, way, port, frame, sends);
        sends.extend(held.map(|late| (way, port, late)));
    }),
    ("red-half", |state, way, port, frame, sends| {
        let is_second = {
            let count = state.counts.entry(port).or_default();
            *count += 1;
            *count % 2 == 0
        };
        leave(way, port, frame, sends, 0x0800, |frame| {
            if is_second && frame[15] & 3 == 3 {
                frame[15] &= !1;
            }
        });
    }),
];

/// Ports 3 and 4 of the relay as a group of links, which is port 3 of the device: without a fault, and with those of a group.
pub fn grouped(state: &mut State, way: Way, port: u8, frame: Vec<u8>, sends: &mut Sends) {
    group(state, (way, port, frame), sends, |_, frame| &MEMBERS[usize::from(frame[11] & 1)..][..1]);
}

/// The faults of groups.
pub const GROUP_FAULTS: [(&str, Editor); 4] = [
    ("lag-sprays", |state, way, port, frame, sends| {
        // The case sends 64 flows in turn.
        group(state, (way, port, frame), sends, |count, _| {
            &MEMBERS[(count / 64) as usize & 1..][..1]
        });
    }),
    ("lag-one-port", |state, way, port, frame, sends| {
        group(state, (way, port, frame), sends, |_, _| &MEMBERS[..1]);
    }),
    ("lag-floods-both", |state, way, port, frame, sends| {
        group(state, (way, port, frame), sends, |_, frame| match is_group(frame) {
            true => &MEMBERS,
            false => &MEMBERS[..1],
        });
    }),
    ("lag-loops", |state, way, port, frame, sends| {
        if way == Way::In && MEMBERS.contains(&port) && is_group(&frame) {
            sends.push((Way::Out, 7 - port, frame.clone()));
        }
        grouped(state, way, port, frame, sends);
    }),
];

/// The ports of the group.
const MEMBERS: [u8; 2] = [3, 4];

/// `choose` says by which ports a frame leaves the group, from the count of frames and the frame.
fn group(
    state: &mut State,
    (way, port, frame): (Way, u8, Vec<u8>),
    sends: &mut Sends,
    choose: fn(u32, &[u8]) -> &'static [u8],
) {
    match (way, port) {
        (Way::In, 4) => sends.push((way, 3, frame)),
        (Way::Out, 4) => {}
        (Way::Out, 3) => {
            let count = state.counts.entry(port).or_default();
            *count += 1;
            let ports = choose(*count, &frame).iter();
            sends.extend(ports.map(|port| (way, *port, frame.clone())));
        }
        _ => unaltered(state, way, port, frame, sends),
    }
}

/// Changes frames with this EtherType that leave.
fn leave(
    way: Way,
    port: u8,
    mut frame: Vec<u8>,
    sends: &mut Sends,
    ethertype: u16,
    change: impl FnOnce(&mut Vec<u8>),
) {
    if way == Way::Out && frame.len() >= 34 && frame[12..14] == ethertype.to_be_bytes() {
        change(&mut frame);
    }
    sends.push((way, port, frame));
}

fn station(octets: &[u8]) -> [u8; 6] {
    *octets.first_chunk().expect("six octets")
}

fn is_group(frame: &[u8]) -> bool {
    frame[0] & 1 == 1
}

fn learn(state: &mut State, way: Way, port: u8, frame: &[u8], moves: bool) {
    let source = station(&frame[6..]);
    if way == Way::In && (moves || !state.known.contains_key(&source)) {
        state.known.insert(source, port);
    }
}

/// Whether a switch floods it; reserved addresses stay.
fn is_flooded(state: &State, frame: &[u8]) -> bool {
    let is_reserved = frame[..5] == [0x01, 0x80, 0xc2, 0, 0];
    !is_reserved && (is_group(frame) || !state.known.contains_key(&frame[..6]))
}

fn to_others(state: &State, port: u8, frame: &[u8], sends: &mut Sends) {
    let others = (1..=state.ports).filter(|other| *other != port);
    sends.extend(others.map(|other| (Way::Out, other, frame.to_vec())));
}

/// The relay forwards to stations in its own table, and the device does the rest.
fn by_table(state: &mut State, way: Way, port: u8, frame: Vec<u8>, sends: &mut Sends) {
    match state.known.get(&frame[..6]) {
        Some(known) if way == Way::In && !is_group(&frame) => {
            if *known != port {
                sends.push((Way::Out, *known, frame));
            }
        }
        _ => unaltered(state, way, port, frame, sends),
    }
}

fn forwards(state: &mut State, way: Way, port: u8, frame: Vec<u8>, sends: &mut Sends, last: u8) {
    if way == Way::In && frame[..6] == [0x01, 0x80, 0xc2, 0, 0, last] {
        to_others(state, port, &frame, sends);
    }
    unaltered(state, way, port, frame, sends);
}

/// Changes the enable vector and the times of PFC frames to the device.
fn pfc(
    way: Way,
    port: u8,
    mut frame: Vec<u8>,
    sends: &mut Sends,
    change: impl FnOnce(&mut u8, &mut [u16; 8]),
) {
    if way == Way::In && frame.len() >= 34 && frame[12..16] == [0x88, 0x08, 1, 1] {
        let mut times = [0; 8];
        for (n, time) in times.iter_mut().enumerate() {
            *time = u16::from_be_bytes([frame[18 + 2 * n], frame[19 + 2 * n]]);
        }
        change(&mut frame[17], &mut times);
        for (n, time) in times.iter().enumerate() {
            frame[18 + 2 * n..20 + 2 * n].copy_from_slice(&time.to_be_bytes());
        }
    }
    sends.push((way, port, frame));
}
