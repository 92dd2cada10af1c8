//! ROCE-05 and ROCE-14 live: marks on their way through three switches, and two senders who share a line.

use super::dcqcn;
use crate::bench::packets::ethernet::ecn;
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{LOSSLESS, roomy};
use crate::live::fabrics::Fabric;
use proto::events::Direction;
use proto::ids::Ecn;
use proto::wire::roce::Packet;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use std::collections::BTreeMap;

static CHAIN: Cached<Fabric> = Cached::new(chain, Fabric::holds);
static PAIR: Cached<Fabric> = Cached::new(pair, Fabric::holds);

/// Where packets are caught, one switch after the other.
const HOPS: [&str; 3] = ["s0:2", "s1:2", "s2:2"];
const MESSAGES: u64 = 100;

fn chain() -> Result<Fabric, Failure> {
    let text = format!(
        "schema = 1\nname = \"chain\"\nsource = \"live conformance cases\"\n\
         [run]\nseed = 7\nduration = \"600 ms\"\nbackend = \"udp\"\ncapture = {HOPS:?}\n\
         [fabric]\ntechnology = \"ethernet\"\n\
         nodes = [{{ name = \"h1\", kind = \"nic\" }}, {{ name = \"h2\", kind = \"nic\" }}, \
         {{ name = \"s0\", kind = \"switch\" }}, {{ name = \"s1\", kind = \"switch\" }}, \
         {{ name = \"s2\", kind = \"switch\" }}]\n\
         links = [{{ a = \"h1:1\", b = \"s0:1\" }}, {{ a = \"s0:2\", b = \"s1:1\" }}, \
         {{ a = \"s1:2\", b = \"s2:1\" }}, {{ a = \"s2:2\", b = \"h2:1\" }}]\n\
         link = {{ rate = \"10 Mbps\", pause = \"pfc\", delay = \"200 us\" }}\n{}{}\
         [[traffic]]\nname = \"marked\"\nfrom = \"h1\"\nto = \"h2\"\narrivals = \"backlog\"\n\
         size = \"2048 B\"\nmessages = {MESSAGES}\n",
        roomy(""),
        dcqcn("kmin = \"0 B\"\nkmax = \"0 B\"\nreaction = \"frozen\"")
    );
    Fabric::run(&text, 1)
}

/// The ICRCs of the data that left `port`, by PSN, each packet marked and all that protects it right.
fn passed(fabric: &Fabric, port: &str) -> Result<BTreeMap<u32, u32>, Failure> {
    let mut icrcs = BTreeMap::new();
    for captured in fabric.captured(port, Direction::Tx)? {
        let octets = &captured.frame.octets;
        let Ok(Some(packet)) = Packet::parse(octets) else { continue };
        let psn = packet.transport.bth.psn.get();
        let what = format!("packet {psn} behind {port}");
        same(format!("CE of {what}"), ecn(&captured.frame) == Ecn::CongestionExperienced, true)?;
        verify_icrc(octets).map_err(|error| format!("{what}: {error}"))?;
        verify_checksums(octets).map_err(|error| format!("{what}: {error}"))?;
        icrcs.insert(psn, packet.icrc);
    }
    Ok(icrcs)
}

/// ROCE-05.
pub fn integrity() -> Finding {
    let fabric = CHAIN.get()?;
    let experiment = fabric.trusted()?;
    let [first, second, third] = HOPS.map(|port| passed(&fabric, port));
    let first = first?;
    ensure(first.len() as u64 == MESSAGES && first == second? && first == third?, || {
        format!("of {MESSAGES} packets {} leave the first switch, others elsewhere", first.len())
    })?;
    let reading = fabric.reading("h2").ok_or_else(|| "no reading of h2".to_owned())?;
    let marked: u64 = reading.receptions.iter().map(|flow| flow.marked).sum();
    same("packets that h2 takes with their mark", marked, MESSAGES)?;
    same("frames dropped", experiment.result.conservation.dropped.values().sum::<u64>(), 0)?;
    Ok(format!(
        "{MESSAGES} packets marked at the first of 3 switches: ICRC the same, checksums right behind each, all taken"
    ))
}

/// A frame of 1 KiB at 40 Gb/s is 0.22 µs; so much slowed down, 0.87 ms.
const SLOWED: u64 = 4_000;
/// Kmax of the paper.
const KMAX: u64 = 200_000;

fn pair() -> Result<Fabric, Failure> {
    let text = format!(
        "schema = 1\nname = \"pair\"\nsource = \"live conformance cases\"\n\
         [run]\nseed = 7\nduration = \"8 ms\"\nbackend = \"udp\"\nsample = \"4500 us\"\n\
         [fabric]\ntechnology = \"ethernet\"\nmtu = \"1024 B\"\n\
         nodes = [{{ name = \"h1\", kind = \"nic\" }}, {{ name = \"h2\", kind = \"nic\" }}, \
         {{ name = \"h3\", kind = \"nic\" }}, {{ name = \"s0\", kind = \"switch\" }}]\n\
         links = [{{ a = \"h1:1\", b = \"s0:1\" }}, {{ a = \"h2:1\", b = \"s0:2\" }}, \
         {{ a = \"h3:1\", b = \"s0:3\" }}]\n\
         link = {{ rate = \"40 Gbps\", pause = \"pfc\", delay = \"1 us\" }}\n\
         switch = {{ memory = \"shared-pool\", headroom = \"72 KB\", jitter = \"10 us\" }}\n{}\
         [[traffic]]\nname = \"pair\"\nfrom = \"h[1-2]\"\nto = \"h3\"\narrivals = \"backlog\"\n\
         size = \"1 MB\"\ntransport = \"uc\"\n\
         [[measure]]\nname = \"h1\"\nof = \"share\"\nat = \"h1>h3\"\nfrom = \"4 ms\"\n\
         [[measure]]\nname = \"h2\"\nof = \"share\"\nat = \"h2>h3\"\nfrom = \"4 ms\"\n\
         [[measure]]\nname = \"pauses\"\nof = \"count\"\nat = \"*\"\nfrom = \"4 ms\"\ncounter = \"pauses\"\n\
         reduce = \"sum\"\n",
        dcqcn("profile = \"paper\"")
    );
    Fabric::run(&text, SLOWED)
}

/// ROCE-14.
pub fn two_flows() -> Finding {
    let fabric = PAIR.get()?;
    let experiment = fabric.trusted()?;
    let shares = [fabric.measure("h1")?, fabric.measure("h2")?];
    let sum = shares[0] + shares[1];
    let jain = sum * sum / (2.0 * (shares[0] * shares[0] + shares[1] * shares[1]));
    ensure(jain >= 0.95, || format!("Jain's index is {jain:.3} of {shares:?}"))?;
    ensure(sum > 0.9, || format!("only {sum:.2} of the line is used"))?;
    let pauses = fabric.measure("pauses")?;
    ensure(pauses == 0.0, || format!("{pauses} frames of PFC after convergence"))?;
    let out = fabric.reading("s0").and_then(|reading| reading.ports.get(2));
    let out = out.ok_or_else(|| "no reading of s0:3".to_owned())?;
    // Since the only edge of a bin.
    let queue = out.lanes[usize::from(LOSSLESS)].counters.out_queue.max;
    ensure(queue < KMAX, || format!("the queue reached {queue} octets, Kmax is {KMAX}"))?;
    same("frames dropped", experiment.result.conservation.dropped.values().sum::<u64>(), 0)?;
    Ok(format!(
        "shares {:.3} and {:.3}, Jain's index {jain:.3}; queue at most {queue} of {KMAX} octets; no PFC",
        shares[0], shares[1]
    ))
}
