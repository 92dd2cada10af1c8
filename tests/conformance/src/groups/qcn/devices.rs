//! QCN-03, QCN-05, QCN-07, QCN-08, QCN-12: a switch whose queues are sampled with nearly every frame, and
//! what its neighbours see of it.

use crate::bench::Bench;
use crate::bench::devices::ethernet::{roomy, switch, with_pause};
use crate::bench::packets::congestion::{self, CNM, CNPV, Message, marks, with_flow};
use crate::case::{Failure, Finding, ensure, same};
use proto::congestion::SchemeConfig;
use proto::frame::Frame;
use proto::ids::{Lid, Priority};
use proto::units::Duration;
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::{MacAddress, plan};
use std::collections::BTreeSet;
use switchd::config::{Defence, DomainConfig};
use switchd::switch::Switch;

/// The port whose queue stands.
const OUT: u8 = 4;
/// Octets of a frame without FCS.
const LENGTH: usize = 1_000;
/// More than all frames of a case take.
const LONG: Duration = Duration::from_us(1_000);

/// Sampled at least every 1.4 KB, and always bad news.
pub const EAGER: &str = "cp_q_sp = \"100 B\"\ncp_sample_base = \"10 KB\"";

/// A switch of four ports that goes by VLAN priorities, each port with its part in the domain.
fn bench(domain: impl Fn(u8) -> DomainConfig) -> Result<Bench<Switch>, Failure> {
    let by_pcp = |pause: &mut proto::link::PauseConfig| pause.priorities = PriorityMap::BY_PCP;
    let mut config = with_pause(roomy(switch(OUT)), by_pcp);
    let params = EAGER.parse().map_err(|error| format!("{EAGER}: {error}"))?;
    config.scheme = SchemeConfig { kind: "qcn".to_owned(), params };
    for (index, port) in config.ports.iter_mut().enumerate() {
        port.domain = domain(index as u8 + 1);
    }
    Ok(Bench::ethernet(Switch::new(config).map_err(|error| error.to_string())?))
}

fn inside(_: u8) -> DomainConfig {
    DomainConfig::new(1 << CNPV, Defence::InteriorReady)
}

fn sent(from: u16, to: u8, pcp: u8) -> Frame {
    congestion::sent(from, to, pcp, LENGTH)
}

/// Two ports send `count` frames each on a priority to `to`, one after another.
fn press(bench: &mut Bench<Switch>, to: u8, pcp: u8, count: u32) {
    for _ in 0..count {
        for from in [1, 2] {
            bench.send(from, sent(u16::from(from), to, pcp));
        }
    }
    bench.run_for(LONG);
}

/// The messages that the neighbour at `port` has seen.
fn messages(bench: &Bench<Switch>, port: u8) -> Result<Vec<Message>, Failure> {
    Message::among(bench.packets(port).map(|sent| &sent.frame))
}

/// The address of a port of the bench's switch.
fn address(port: u8) -> MacAddress {
    plan::mac(Lid::new(100 + u16::from(port)))
}

/// QCN-03.
pub fn only_controlled() -> Finding {
    let mut bench = bench(inside)?;
    press(&mut bench, OUT, CNPV, 20);
    let mut told = 0;
    for port in [1u8, 2] {
        for Message { preface, .. } in messages(&bench, port)? {
            let header = preface.envelope.header;
            same("DA", header.destination, plan::mac(Lid::new(port.into())))?;
            same("SA", header.source, address(OUT))?;
            told += 1;
        }
    }
    ensure(told > 10, || format!("{told} messages of 40 frames"))?;
    // A message among the frames of the queue, a priority outside, and an address of a group.
    let told_on = congestion::opinion(address(OUT), OUT.into());
    let message = congestion::message(told_on, (plan::mac(Lid::new(1)), OUT.into()), CNPV, LENGTH);
    bench.forget();
    for _ in 0..40 {
        bench.send(1, message.clone());
    }
    bench.run_for(LONG);
    same("messages about messages", messages(&bench, 1)?.len(), 0)?;
    press(&mut bench, OUT, 5, 20);
    let outside = messages(&bench, 1)?.len() + messages(&bench, 2)?.len();
    same("messages about priority 5", outside, 0)?;
    for _ in 0..40 {
        let mut group = sent(1, OUT, CNPV);
        group.octets[6] |= 1;
        bench.send(1, group);
    }
    bench.run_for(LONG);
    same(
        "messages to groups",
        (1..=3).map(|port| messages(&bench, port).map_or(0, |m| m.len())).sum::<usize>(),
        0,
    )?;
    Ok(format!("{told} messages to those whose frames were sampled; to nobody else"))
}

/// QCN-05.
pub fn cpid() -> Finding {
    let cpids = || -> Result<Vec<u64>, Failure> {
        let mut bench = bench(|_| DomainConfig::new(1 << CNPV | 1 << 5, Defence::InteriorReady))?;
        let mut found = Vec::new();
        for (port, priority) in [(3, CNPV), (3, 5), (OUT, CNPV), (OUT, 5)] {
            press(&mut bench, port, priority, 20);
            // Which of the two sources is sampled is chance.
            let [one, two] = [1, 2].map(|source| messages(&bench, source));
            let of: BTreeSet<u64> =
                one?.into_iter().chain(two?).map(|seen| seen.cnm.cpid).collect();
            let one = of.first().filter(|_| of.len() == 1);
            let names = format!("port {port}, priority {priority}: {of:x?}");
            let cpid = *one.ok_or(names)?;
            same("CPID", cpid, address(port).number() << 16 | u64::from(priority))?;
            found.push(cpid);
            bench.forget();
        }
        Ok(found)
    };
    let (first, again) = (cpids()?, cpids()?);
    same("distinct", first.iter().collect::<BTreeSet<_>>().len(), 4)?;
    ensure(first == again, || format!("{first:x?}, after a restart {again:x?}"))?;
    Ok("port address and priority: four points, four names, the same after a restart".to_owned())
}

/// What the neighbour at `port` has seen that is no message: VLAN priority and CN-TAG.
fn arrived(bench: &Bench<Switch>, port: u8) -> Result<Vec<(u8, Option<u16>)>, Failure> {
    bench.packets(port).filter_map(|sent| marks(&sent.frame).transpose()).collect()
}

/// One frame with the tag of flow 7 from inside to a port with this defence.
fn leaving(defence: Defence, pcp: u8) -> Result<(u8, Option<u16>), Failure> {
    let domain = |port| match port {
        OUT => DomainConfig::new(1 << CNPV, defence),
        _ => inside(port),
    };
    let mut bench = bench(domain)?;
    bench.send(1, with_flow(sent(1, OUT, pcp), 7));
    bench.run_for(LONG);
    let [one] = arrived(&bench, OUT)?[..] else {
        return Err("one frame did not pass".to_owned().into());
    };
    Ok(one)
}

/// QCN-07.
pub fn tag_removal() -> Finding {
    for (defence, owed) in [
        (Defence::Edge, None),
        (Defence::Interior, None),
        (Defence::InteriorReady, Some(7)),
        (Defence::Disabled, Some(7)),
    ] {
        let (_, flow) = leaving(defence, CNPV)?;
        ensure(flow == owed, || format!("{defence:?}: flow {flow:?}, expected {owed:?}"))?;
        let (_, other) = leaving(defence, 5)?;
        ensure(other == Some(7), || format!("{defence:?}, priority 5: {other:?}"))?;
    }
    Ok("removed at edge and interior; kept inside, and on every other priority".to_owned())
}

/// QCN-08.
pub fn defence_modes() -> Finding {
    // The next lower priority that is no CNPV.
    const ALTERNATE: u8 = 2;
    for (defence, owed) in [
        (Defence::Disabled, CNPV),
        (Defence::Edge, ALTERNATE),
        (Defence::Interior, CNPV),
        (Defence::InteriorReady, CNPV),
    ] {
        let domain = |port| match port {
            1 => DomainConfig::new(1 << CNPV, defence),
            _ => inside(port),
        };
        let mut bench = bench(domain)?;
        for pcp in 0..8 {
            bench.send(1, with_flow(sent(1, OUT, pcp), 7));
        }
        bench.run_for(LONG);
        let seen: BTreeSet<u8> = arrived(&bench, OUT)?.into_iter().map(|(pcp, _)| pcp).collect();
        let expected: BTreeSet<u8> =
            (0..8).map(|pcp| if pcp == CNPV { owed } else { pcp }).collect();
        ensure(seen == expected, || format!("{defence:?}: {seen:?}, expected {expected:?}"))?;
    }
    Ok("edge remaps 3 to 2; disabled, interior and interior-ready keep it".to_owned())
}

/// QCN-12.
pub fn priority_of_messages() -> Finding {
    let mut bench = bench(inside)?;
    // The way back is congested too, and its neighbour has asked for silence on the CNPV.
    bench.pfc(1, 1 << CNPV, u16::MAX);
    for _ in 0..40 {
        bench.send(3, sent(3, 1, CNPV));
        bench.send(1, sent(1, OUT, CNPV));
    }
    bench.run_for(Duration::from_us(100));
    let told = messages(&bench, 1)?;
    let behind = arrived(&bench, 1)?.len();
    same("frames that passed the pause", behind, 0)?;
    ensure(told.len() > 5, || format!("{} messages while data was paused", told.len()))?;
    for Message { preface, .. } in &told {
        let pcp = preface.envelope.tag.map(|tag| tag.priority);
        ensure(pcp == Some(Priority::truncate(CNM)), || format!("priority {pcp:?}"))?;
    }
    Ok(format!("{} messages on priority 6 past 40 frames that are paused", told.len()))
}
