//! IBCC-16: a hot spot with and without control.

use crate::prelude::*;

/// Half of the network's load to one node (Pfister et al., table 1, case 4), with 8 nodes.
const HOT_SPOT: &str = r#"
schema = 1
name = "hot-spot"
source = "Pfister et al., section VI.A, 8 nodes, case 4"
[run]
seed = 7
duration = "4000 mtu"
backend = "udp"
[fabric]
shape = "xgft"
m = [2, 4]
w = [1, 2]
link = { rate = "8 Gbps", delay = "0.125 mtu", lanes = 4 }
[[traffic]]
name = "cold"
from = "h[0-6]"
to = "uniform"
load = 0.55
[[traffic]]
name = "hot"
from = "h[0-6]"
to = "h7"
load = 0.35
[[traffic]]
name = "hot-node"
from = "h7"
to = "uniform"
load = 0.9
[[measure]]
name = "hot"
of = "throughput"
at = "h7:rx"
from = "2500 mtu"
to = "4000 mtu"
reduce = "mean"
per = "line"
[[measure]]
name = "cold"
of = "throughput"
at = "h[0-6]:rx"
from = "2500 mtu"
to = "4000 mtu"
reduce = "mean"
per = "line"
"#;

/// As in topo/scenarios/pfister/eight-ib-cca.toml.
const CONTROLLED: &str = "[scheme]\nkind = \"ib-cca\"\nthreshold = 1\nmarking_rate = 0\n\
    scope = \"queue-pair\"\nbecn = \"ack\"\nccti_increase = 5\nccti_limit = 127\nccti_timer = 7\n\
    cct = \"linear\"\ncct_max_ipd = 7\n";

/// At 8 Gb/s a full frame lasts 2.07 µs; slowed down so, 1.66 ms.
const EIGHT_GIGABITS: u64 = 800;

static WITHOUT: Shared<Fabric> = Shared::new(|on| Fabric::run(on, HOT_SPOT, EIGHT_GIGABITS));
static WITH: Shared<Fabric> =
    Shared::new(|on| Fabric::run(on, &format!("{HOT_SPOT}{CONTROLLED}"), EIGHT_GIGABITS));

/// IBCC-16.
pub fn hot_spot(on: Level) -> Finding {
    const POINTS: f64 = 0.05;
    let (without, with) = (WITHOUT.on(on)?, WITH.on(on)?);
    let (hot, cold) = (with.measure("hot")?, with.measure("cold")?);
    let saturated = without.measure("cold")?;
    ensure(cold >= 0.9 * 0.6 - POINTS, || format!("with control cold ports carry {cold:.3}"))?;
    ensure(hot >= 0.9 - POINTS, || format!("with control the hot port carries {hot:.3}"))?;
    ensure(saturated < 0.75 * cold + POINTS, || {
        format!("without control cold ports carry {saturated:.3}: no tree")
    })?;
    Ok(format!("with control {hot:.3} hot, {cold:.3} cold; without {saturated:.3} cold"))
}
