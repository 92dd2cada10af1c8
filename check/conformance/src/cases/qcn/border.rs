//! QCN-07 and QCN-08: frames with a CN-TAG on their way out of a domain, and into it.

use super::{qcn, star};
use crate::prelude::*;
use crate::stimulus::{Expected, Stimulus, judge, schedule, slot};
use testbed::frames::congestion::{CNPV, marks, sent, with_flow};

/// Ports, how they defend the CNPV, and whether tags go out there.
const PORTS: [(u8, &str, bool); 4] = [
    (2, "edge", false),
    (3, "interior", false),
    (4, "interior-ready", true),
    (5, "disabled", true),
];
/// A priority outside.
const OTHER: u8 = 5;
const LENGTH: usize = 1_000;
const FLOW: u16 = 7;

/// What comes in, and what leaves by which port.
fn stimuli() -> Vec<Stimulus> {
    let mut all = Vec::new();
    for (port, defence, keeps) in PORTS {
        for pcp in [CNPV, OTHER] {
            let plain = sent(1, port, pcp, LENGTH);
            let tagged = with_flow(plain.clone(), FLOW);
            let left = if keeps || pcp == OTHER { &tagged } else { &plain };
            let mut add = |what: &str, comes: &Frame, leaves: &Frame| {
                let expected = Expected::Sent(port, leaves.octets.clone());
                let what = format!("{defence}, priority {pcp}{what}");
                all.push(Stimulus::new("QCN-07", what, comes.octets.clone(), expected));
            };
            add(", tagged", &tagged, left);
            add("", &plain, &plain);
        }
    }
    all
}

/// The domain of the CNPV, with these defences of ports.
fn domain(ports: &[(u8, &str)]) -> String {
    let ports = ports
        .iter()
        .map(|(port, defence)| format!("{{ at = \"s0:{port}\", defence = \"{defence}\" }}, "));
    format!("cnpv = [{CNPV}], ports = [{}]", ports.collect::<String>())
}

static RUN: Shared<Record> = Shared::new(|on| {
    let domain = domain(&PORTS.map(|(port, defence, _)| (port, defence)));
    play(on, &star(5, "300 ms", &domain, &qcn("")), "s0", |script| schedule(script, &stimuli()))
});

/// QCN-07.
pub fn tag_removal(on: Level) -> Finding {
    let record = RUN.on(on)?;
    judge("QCN-07", &stimuli(), &record)?;
    record.nothing_lost(&[])?;
    Ok("removed at edge and interior, not an octet else; kept inside, and on every other priority"
        .into())
}

/// QCN-08: tagged frames of each priority on their way in past each defence.
pub fn defence_modes(on: Level) -> Finding {
    // Of priority 3 the alternate is the next lower one.
    const EXPECTED: [(u8, &str, u8); 4] =
        [(1, "disabled", 3), (2, "edge", 2), (3, "interior", 3), (4, "interior-ready", 3)];
    let domain = domain(&EXPECTED.map(|(port, defence, _)| (port, defence)));
    let record = play(on, &star(5, "500 ms", &domain, &qcn("")), "s0", |script| {
        for (port, pcp) in (1..=4).flat_map(|port| (0..8).map(move |pcp| (port, pcp))) {
            let frame = with_flow(sent(port.into(), 5, pcp, LENGTH), FLOW);
            let at = slot(usize::from(port - 1) * 8 + usize::from(pcp));
            script.at(at, move |bed| bed.send_frame(port, &frame));
        }
    })?;
    let mut left = record.packets(5);
    for (_, defence, priority) in EXPECTED {
        for pcp in 0..8 {
            let seen = left.next().ok_or_else(|| format!("{defence}: a frame is missing"))?;
            let found = marks(&seen.frame)?.map(|(pcp, _)| pcp);
            let expected = if pcp == CNPV { priority } else { pcp };
            same(format!("{defence}: what becomes of {pcp}"), found, Some(expected))?;
        }
    }
    same("frames more", left.count(), 0)?;
    Ok("edge remaps 3 to 2; disabled, interior and interior-ready keep it".into())
}
