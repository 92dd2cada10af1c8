//! QOS-11 live: every adapter to every other, on every priority, all of them lossless in little memory.

use crate::case::{Failure, Finding, ensure, same};
use crate::live::Star;
use crate::live::cached::Cached;
use crate::live::ethernet::{STAR, memory};
use crate::live::fabrics::Fabric;
use proto::counters::LaneCounters;

static RUN: Cached<Fabric> = Cached::new(mesh, Fabric::holds);

const HOSTS: u8 = 4;
/// Messages of each adapter to each other on each priority.
const MESSAGES: u64 = 8;
/// Octets of each: a full frame and a short one.
const SIZE: u64 = 2_148;

fn mesh() -> Result<Fabric, Failure> {
    // A NIC hears XOFF when its process is woken: headroom for 25 ms of that.
    let mut rest = memory((4, 16), "", "");
    rest += "nic = { dscp = [0, 8, 16, 24, 32, 40, 48, 56, 0, 0, 0, 0, 0, 0, 0, 0] }\n";
    for (from, to) in pairs() {
        for priority in 0..8 {
            rest += &format!(
                "[[traffic]]\nname = \"h{from}-h{to}-{priority}\"\nfrom = \"h{from}\"\nto = \"h{to}\"\n\
                 arrivals = \"backlog\"\nsize = \"{SIZE} B\"\nmessages = {MESSAGES}\nsl = {priority}\n\
                 transport = \"{}\"\n",
                if priority < 4 { "rc" } else { "uc" }
            );
        }
    }
    let link = "lossless = [0, 1, 2, 3, 4, 5, 6, 7]";
    Fabric::run(&Star { nics: HOSTS, duration: "1500 ms", link, rest: &rest, ..STAR }.text(), 1)
}

fn pairs() -> impl Iterator<Item = (u8, u8)> {
    let pairs = (1..=HOSTS).flat_map(|from| (1..=HOSTS).map(move |to| (from, to)));
    pairs.filter(|(from, to)| from != to)
}

/// QOS-11.
pub fn full_mesh() -> Finding {
    let fabric = RUN.get()?;
    let experiment = fabric.trusted()?;
    let sum = &experiment.result.conservation;
    ensure(sum.closes(), || format!("{sum:?} does not close"))?;
    same("frames dropped", sum.dropped.values().sum::<u64>(), 0)?;
    same("frames standing anywhere at the end", sum.buffered, 0)?;
    let flows = pairs().count() as u64 * 8;
    let messages = (1..=HOSTS).filter_map(|host| fabric.reading(&format!("h{host}")));
    let messages: u64 =
        messages.flat_map(|reading| &reading.receptions).map(|flow| flow.messages).sum();
    same("messages delivered", messages, flows * MESSAGES)?;
    let mut pauses = 0;
    for host in 1..=HOSTS {
        let (near, far) =
            (fabric.totals("s0", host.into())?, fabric.totals(&format!("h{host}"), 1)?);
        let both = |counters: &LaneCounters| [counters.tx_frames, counters.rx_frames];
        let ([sent, received], [out, back]) = (both(&near), both(&far));
        ensure((sent, received) == (back, out), || {
            format!("s0:{host} has sent {sent} and received {received}, h{host} {out} and {back}")
        })?;
        pauses += near.ctl_tx;
    }
    ensure(pauses > 0, || "nobody was ever silenced: the case says little".to_owned())?;
    Ok(format!(
        "{flows} flows of {MESSAGES} messages, all delivered, both ends of every cable agree; {pauses} \
         frames of PFC"
    ))
}
