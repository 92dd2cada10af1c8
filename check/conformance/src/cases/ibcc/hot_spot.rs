//! IBCC-16: a hot spot with and without control.

use crate::prelude::*;

/// Half of the network's load to one node (Pfister et al., table 1, case 4), with 8 nodes.
const HOT_SPOT: &str = include_str!("hot_spot.toml");

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
    ensure!(cold >= 0.9 * 0.6 - POINTS, "with control cold ports carry {cold:.3}");
    ensure!(hot >= 0.9 - POINTS, "with control the hot port carries {hot:.3}");
    lies("cold ports without control", saturated, ..0.75 * cold + POINTS)?;
    Ok(format!("with control {hot:.3} hot, {cold:.3} cold; without {saturated:.3} cold"))
}
