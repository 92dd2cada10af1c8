//! IBRX: InfiniBand: receive checks and relay: one switch and one NIC, each with many wrong packets in one run.

use crate::prelude::*;
use crate::star::star;
use crate::stimulus::{Expected, FIRST, Stimulus, finding, schedule};
use proto::wire::infiniband::{Opcode, crc};
use testbed::frames::infiniband::{Packet, altered, damaged, length_of, with_length};

/// The scripts of the group, by case.
pub const SCRIPTS: Scripts = &[
    ("IBRX-01", bad_vcrc),
    ("IBRX-02", |on| both(on, "IBRX-02")),
    ("IBRX-03", |on| both(on, "IBRX-03")),
    ("IBRX-04", |on| both(on, "IBRX-04")),
    ("IBRX-05", |on| both(on, "IBRX-05")),
    ("IBRX-06", destination),
    ("IBRX-07", link_state),
    ("IBRX-08", |on| both(on, "IBRX-08")),
    ("IBRX-09", relabelled),
];

/// Largest payload.
const MTU: usize = 2048;
/// Fewer words no packet has: LRH, BTH and ICRC. Source: IBTA Vol 1, 7.7.8 and 9.2.
const WORDS_MIN: u16 = 6;
/// A LID that no adapter has.
const ABSENT: u16 = 99;
const MULTICAST: u16 = 0xc001;
const OTHER_GROUP: u16 = 0xc002;
const PERMISSIVE: u16 = 0xffff;

/// Two lanes; level 1 goes by lane 1, all others by lane 0. Classes RC and UC.
const REST: &str = include_str!("ibrx.toml");

/// How long a run lasts.
const DURATION: (&str, Instant) = ("900 ms", ms(900));

static SWITCH: Shared<Record> = Shared::new(|on| {
    play(on, &star(4, DURATION.0, "vls = 2", REST), "s0", |script| {
        training(script, 4);
        schedule(script, &at_switch());
    })
});

static NIC: Shared<Record> = Shared::new(|on| {
    play(on, &star(4, DURATION.0, "vls = 2", REST), "h1", |script| {
        training(script, 1);
        schedule(script, &at_nic());
    })
});

/// The neighbour at `port` trains late, step by step, and tries to send data in each state.
fn training(script: &mut Script, port: u8) {
    script.at(Instant::ZERO, move |bed| bed.set_mode(port, FcMode::Off));
    script.at(STATES[1], move |bed| bed.set_mode(port, FcMode::Initialize));
    script.at(STATES[2], move |bed| bed.set_mode(port, FcMode::Normal));
    for (state, psn) in STATES.into_iter().zip(0..) {
        let to = if port == 1 { 1 } else { 2 };
        let from = if port == 1 { 2 } else { u16::from(port) };
        script.at(state + us(10_000), move |bed| {
            // In the first state it is refused, so the next one has the same number.
            let psn = u32::saturating_sub(psn, 1);
            bed.send(port, &Packet::new(from, to, psn).octets());
            bed.send(port, &management(PERMISSIVE));
        });
        if port != 1 {
            script.at(state + us(10_000), move |bed| {
                bed.send(1, &Packet::new(1, u16::from(port), psn).octets());
            });
        }
    }
}

/// No flow control has come; op 1 has come; op 0 has come.
const STATES: [Instant; 4] = [ms(20), ms(50), ms(80), ms(110)];

/// A subnet management packet: only its lane matters, and that it is not raw.
fn management(to: u16) -> BytesMut {
    Packet { lane: 15, ..Packet::new(1, to, 0) }.octets()
}

/// The octets of a raw packet on the management lane, with this LNH.
fn raw_management(next: u8) -> BytesMut {
    let mut octets = damaged(management(PERMISSIVE), |octets| octets[1] = octets[1] & 0xfc | next);
    crc::refresh_vcrc(&mut octets);
    octets
}

/// The same at both devices; `good` makes the next good packet, `wrong` one that must not pass.
fn at_both(good: impl Fn(Packet) -> Packet, passes: &Expected) -> Vec<Stimulus> {
    use DropReason::{Aborted, Icrc, Lane, Mtu, PacketLength, Vcrc};
    let lost = Expected::Lost;
    let plain = || good(Packet::new(2, 1, 0)).octets();
    let mut all = vec![
        Stimulus::new("IBRX-01", "a good packet", plain(), passes.clone()),
        Stimulus::new("IBRX-01", "VCRC complemented", spoilt_vcrc(plain()), lost(Vcrc)),
        Stimulus::new("IBRX-08", "a good packet, given up", plain(), lost(Aborted)),
        Stimulus::new("IBRX-08", "the same with a bad VCRC", spoilt_vcrc(plain()), lost(Aborted)),
    ];
    all.iter_mut().skip(2).for_each(|stimulus| stimulus.aborted = true);
    let large = |payload| Packet { payload, ..good(Packet::new(2, 1, 0)) }.octets();
    for payload in [0, 1024, MTU] {
        let words = length_of(&large(payload));
        for length in [words + 1, words - 1, 0, WORDS_MIN - 1, 0x7ff] {
            let what = format!("PktLen {length} of {words}");
            let octets = with_length(large(payload), length);
            all.push(Stimulus::new("IBRX-03", what, octets, lost(PacketLength)));
        }
    }
    let mut short = large(0);
    short.truncate(22);
    let short = with_length(short, WORDS_MIN - 1);
    all.push(Stimulus::new("IBRX-03", "a packet of five words", short, lost(PacketLength)));
    all.push(Stimulus::new("IBRX-04", "payload of one MTU", large(MTU), passes.clone()));
    for size in [MTU + 1, MTU + 4, 2 * MTU] {
        all.push(Stimulus::new("IBRX-04", format!("payload of {size}"), large(size), lost(Mtu)));
    }
    for lane in 2..15 {
        let octets = Packet { lane, ..good(Packet::new(2, 1, 0)) }.octets();
        all.push(Stimulus::new("IBRX-05", format!("VL{lane} of 2"), octets, lost(Lane)));
    }
    for next in [0, 1] {
        let what = format!("a raw packet on VL15, LNH {next}");
        all.push(Stimulus::new("IBRX-05", what, raw_management(next), lost(Lane)));
    }
    // Marked, so that a notification would be due if it were accepted.
    let fails = if matches!(passes, Expected::Answered) { lost(Icrc) } else { passes.clone() };
    for (opcode, class) in [(Opcode::RC_SEND_ONLY, 0), (Opcode::UC_SEND_ONLY, 1)] {
        let marked = good(Packet { fecn: true, opcode, class, ..Packet::new(2, 1, 0) }).octets();
        let icrc = damaged(marked, |octets| {
            let at = octets.len() - 6;
            octets[at] ^= 0xff;
            crc::refresh_vcrc(octets);
        });
        let what = format!("{opcode} with a bad ICRC under a good VCRC");
        all.push(Stimulus::new("IBRX-02", what, icrc, fails.clone()));
    }
    let permissive = management(PERMISSIVE);
    let ends = lost(DropReason::Management);
    all.push(Stimulus::new("IBRX-06", "the permissive LID on VL15", permissive, ends));
    all
}

fn spoilt_vcrc(octets: BytesMut) -> BytesMut {
    damaged(octets, |octets| octets.iter_mut().rev().take(2).for_each(|octet| *octet = !*octet))
}

/// All from h1 to h2.
fn at_switch() -> Vec<Stimulus> {
    let to = |from, to| move |packet| Packet { from, to, ..packet };
    let mut all = at_both(to(1, 2), &Expected::Left(vec![2], 0));
    let addressed = [
        (ABSENT, 0, Expected::Lost(DropReason::NoRoute)),
        (0, 0, Expected::Lost(DropReason::NoRoute)),
        (PERMISSIVE, 0, Expected::Lost(DropReason::NoRoute)),
        (OTHER_GROUP, 0, Expected::Lost(DropReason::NoMulticastRoute)),
        (0xfffe, 0, Expected::Lost(DropReason::NoMulticastRoute)),
        (MULTICAST, 0, Expected::Left(vec![2, 3, 4], 0)),
    ];
    for (dlid, lane, expected) in addressed {
        let octets = Packet { lane, ..Packet::new(1, dlid, 0) }.octets();
        all.push(Stimulus::new("IBRX-06", format!("DLID {dlid:#06x}"), octets, expected));
    }
    for (lane, level) in [(0, 1), (1, 0), (1, 1)] {
        let octets = Packet { lane, level, fecn: level == 1, ..Packet::new(1, 2, 0) }.octets();
        let what = format!("VL{lane} with SL{level}");
        all.push(Stimulus::new("IBRX-09", what, octets, Expected::Left(vec![2], level)));
    }
    all
}

/// All from h2 to h1, which expects their numbers in order: refused ones take none.
fn at_nic() -> Vec<Stimulus> {
    let mut all = at_both(|packet| packet, &Expected::Answered);
    for dlid in [3, 0, PERMISSIVE] {
        let expected = Expected::Lost(DropReason::NotForUs);
        let octets = Packet::new(2, dlid, 0).octets();
        all.push(Stimulus::new("IBRX-06", format!("DLID {dlid:#06x}"), octets, expected));
    }
    let octets = Packet::new(2, MULTICAST, 0).octets();
    all.push(Stimulus::new("IBRX-06", "a multicast LID", octets, Expected::Taken));
    let marked = Packet { fecn: true, lane: 1, level: 0, ..Packet::new(2, 1, 0) }.octets();
    all.push(Stimulus::new("IBRX-09", "marked, by a lane of its own", marked, Expected::Answered));
    // Three packets were taken while the link was trained.
    let mut psn = STATES.len() as u32 - 1;
    for stimulus in &mut all {
        let at = 8 + 12 - 3;
        let vcrc_holds = crc::verify_vcrc(&stimulus.octets).is_ok();
        let icrc_holds = crc::verify_icrc(&stimulus.octets).is_ok();
        let renumbered = |octets: &mut [u8]| {
            octets[at..at + 3].copy_from_slice(&psn.to_be_bytes()[1..]);
        };
        if vcrc_holds && icrc_holds {
            stimulus.octets = altered(stimulus.octets.clone(), renumbered);
        }
        psn += u32::from(matches!(stimulus.expected, Expected::Answered));
    }
    all
}

fn both(on: Level, case: &'static str) -> Finding {
    let (at_switch, at_nic) = (at_switch(), at_nic());
    let (switch, nic) = (SWITCH.on(on)?, NIC.on(on)?);
    finding(case, &[("switchd", &at_switch, &switch), ("nicd", &at_nic, &nic)])
}

/// IBRX-01.
pub fn bad_vcrc(on: Level) -> Finding {
    let seen = both(on, "IBRX-01")?;
    let record = SWITCH.on(on)?;
    for (port, lane) in [(1, 0), (1, 1)] {
        let offers: Vec<u16> = record.flow_control(port, lane).map(|(_, fcp)| fcp.fccl).collect();
        let [first, .., last] = offers[..] else { bail!("port {port} is silent on VL{lane}") };
        let sent = record.neighbours[usize::from(port) - 1].lanes()[usize::from(lane)].sent;
        let room = (last + 4096 - sent) % 4096;
        same(format!("room offered on VL{lane} when all is quiet"), room, first)?;
    }
    Ok(format!("{seen}; all credit is back"))
}

/// IBRX-06.
pub fn destination(on: Level) -> Finding {
    let seen = both(on, "IBRX-06")?;
    let all = on.only_engine(every_address)?;
    Ok(format!("{seen}{all}"))
}

/// Every address that a switch has no route for ends with its reason and leaves nowhere.
fn every_address() -> Result<String> {
    let mut bench =
        Stage::new(Level::Engine, &star(4, "1 s", "vls = 2", REST), "s0")?.bench()?.up()?;
    let rows = [
        (5..=0xbfff, 0, "no_route"),
        (0xc000..=0xc000, 0, "no_multicast_route"),
        (OTHER_GROUP..=0xfffe, 0, "no_multicast_route"),
        // Its own.
        (5..=5, 15, "management"),
    ];
    let mut count = 0;
    for (lids, lane, reason) in rows {
        let before = bench.reading();
        for to in lids.clone() {
            bench.inject(1, Packet { to, lane, payload: 64, ..Packet::new(1, 2, 0) }.frame());
        }
        let what = format!("losses upon LIDs {lids:x?} on VL{lane}");
        same(what, bench.lost_since(&before, 1), format!("{reason} {}", lids.len()))?;
        count += lids.len();
    }
    same("packets out", (1..=4).map(|port| bench.packets(port).count()).sum::<usize>(), 0)?;
    Ok(format!("; {count} addresses without a route"))
}

/// IBRX-07.
pub fn link_state(on: Level) -> Finding {
    let (switch, nic) = (SWITCH.on(on)?, NIC.on(on)?);
    for (device, record, port) in [("switchd", &switch, 4), ("nicd", &nic, 1)] {
        let refused = [DropReason::LinkState, DropReason::Management];
        for (state, at) in ["Initialize", "Arm", "Active", "Active"].into_iter().zip(STATES) {
            let expected = if state == "Initialize" { &refused[..] } else { &refused[1..] };
            let dropped = record.dropped(port, (at, at + us(30_000)));
            same(format!("{device} in {state}"), dropped, expected)?;
        }
        let first = record.packets(port).map(|seen| seen.at).min();
        let early = first.is_none_or(|at| at < STATES[2]);
        same(format!("{device} sends data before Active"), early, false)?;
        let sent = record.packets(port).within((Instant::ZERO, FIRST)).count();
        let expected = if port == 1 { STATES.len() - 1 } else { STATES.len() };
        same(format!("what {device} sends once it is Active"), sent, expected)?;
    }
    Ok("switchd and nicd: data refused in Initialize, taken from Arm on, sent in Active; VL15 passes \
        in each"
        .to_owned())
}

/// IBRX-09.
pub fn relabelled(on: Level) -> Finding {
    let seen = both(on, "IBRX-09")?;
    let marked = super::ibcc::marks_keep_icrc(on)?;
    Ok(format!("{seen}; {marked}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stimulus::slot;

    #[test]
    fn every_stimulus_has_its_slot_before_the_run_is_over() {
        for count in [at_switch().len(), at_nic().len()] {
            assert!(slot(count + 5) < DURATION.1, "{count} stimuli");
        }
    }
}
