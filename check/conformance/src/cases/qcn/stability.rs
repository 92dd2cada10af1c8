//! QCN-11: one, four and eight sources into an output each, of one switch.

use super::qcn;
use crate::prelude::*;

static RUN: Shared<Fabric> = Shared::new(|on| Fabric::run(on, &text(on), SLOWED));

/// A frame of 1500 octets at 10 Gb/s is 1.2 µs; so much slowed down, 1.68 ms.
const SLOWED: u64 = 1_400;
/// Sources, and the share of its line that their output serves: one source alone would congest nothing.
const OUTPUTS: [(u64, f64); 3] = [(1, 0.5), (4, 1.0), (8, 1.0)];
/// Samples and stages nearly six times as often as by default, steps ten times as high: so much sooner the
/// queue settles.
const PARAMS: &str = "cp_sample_base = \"26 KB\"\nrpg_byte_reset = \"26 KB\"\n\
                      rpg_time_reset = \"2600 us\"\nrpg_ai_rate = \"50 Mbps\"\n\
                      rpg_hai_rate = \"500 Mbps\"";
/// What depends on the level: cpQSp, further parameters, when the queue has settled, and until when it is
/// looked at.
fn profile(on: Level) -> [&'static str; 4] {
    match on {
        Level::Live => ["26 KB", PARAMS, "4 ms", "8 ms"],
        _ => ["150 KB", "cp_q_sp = \"150 KB\"", "200 ms", "300 ms"],
    }
}

/// Adapters h0 to h12 send, those from h13 on receive.
fn text(on: Level) -> String {
    let [set_point, params, settled, stop] = profile(on);
    let first: u64 = OUTPUTS.iter().map(|(sources, _)| sources).sum();
    let mut rest = String::new();
    let mut service = String::new();
    let mut from = 0;
    for (number, (sources, share)) in (0u64..).zip(OUTPUTS) {
        let (sink, last) = (first + number, from + sources - 1);
        let port = sink + 1;
        let keys = "arrivals = \"backlog\"\nsize = \"1500 B\"\ntransport = \"test\"";
        let (per_point, per_line) = (format!("per = \"{set_point}\""), "per = \"line\"");
        let [name, queue, line] = ["into", "queue", "line"].map(|what| format!("{what}-{sources}"));
        rest += &traffic(&name, &format!("h[{from}-{last}]"), &format!("h{sink}"), keys);
        rest += &measure(&queue, "queue", &format!("s0:{port}"), settled, &per_point);
        rest += &measure(&line, "throughput", &format!("h{sink}:rx"), settled, per_line);
        if share < 1.0 {
            service += &format!("{{ at = \"s0:{port}\", rate = \"{} Gbps\" }}, ", share * 10.0);
        }
        from += sources;
    }
    let hosts = first + OUTPUTS.len() as u64;
    format!(
        "schema = 1\nname = \"set-point\"\nsource = \"live conformance cases\"\n\
         [run]\nseed = 7\nduration = \"{stop}\"\nbackend = \"udp\"\nsample = \"60 s\"\n\
         [fabric]\nshape = \"star\"\nhosts = {hosts}\ntechnology = \"ethernet\"\nframe = \"1500 B\"\n\
         link = {{ rate = \"10 Gbps\", delay = \"0.125 mtu\", pause = \"pause\", priorities = \"pcp\" }}\n\
         nic = {{ cn_tags = true }}\n\
         [fabric.switch]\nmemory = \"per-input\"\nbuffer = \"600 KB\"\nheadroom = \"15 KB\"\n\
         cn = {{ cnpv = [3] }}\nservice = [{service}]\n{}{rest}{}",
        qcn(params),
        measure("pauses", "count", "*", settled, "counter = \"pauses\"\nreduce = \"sum\"")
    )
}

/// QCN-11.
pub fn stability(on: Level) -> Finding {
    let fabric = RUN.on(on)?;
    let mut seen = Vec::new();
    for (sources, share) in OUTPUTS {
        let queue = fabric.measure(&format!("queue-{sources}"))?;
        let idle = 1.0 - fabric.measure(&format!("line-{sources}"))? / share;
        ensure!((0.5..=1.5).contains(&queue), "{sources} sources: a queue of {queue:.2}");
        ensure!(idle <= 0.05, "{sources} sources: {idle:.3} idle");
        seen.push(format!("{sources}: {queue:.2} cpQSp, {:.1} % idle", idle.max(0.0) * 100.0));
    }
    same("pauses", fabric.measure("pauses")?, 0.0)?;
    same("frames dropped", fabric.dropped(), 0)?;
    Ok(format!("sources {}; 0 lost, 0 paused", seen.join("; ")))
}
