//! QCN-07 and QCN-08: frames with a CN-TAG on their way out of a domain, and into it.

use super::{qcn, star};
use crate::prelude::*;
use crate::stimulus::slot;
use testbed::frames::congestion::{CNPV, marks, sent, with_flow};

static RUN: Shared<Record> = Shared::new(run);

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

/// What comes in, by which port it leaves, and what leaves.
fn stimuli() -> Vec<(String, u8, Frame, Frame)> {
    let mut all = Vec::new();
    for (port, defence, keeps) in PORTS {
        for pcp in [CNPV, OTHER] {
            let plain = sent(1, port, pcp, LENGTH);
            let tagged = with_flow(plain.clone(), FLOW);
            let left = if keeps || pcp == OTHER { tagged.clone() } else { plain.clone() };
            all.push((format!("{defence}, priority {pcp}, tagged"), port, tagged, left));
            all.push((format!("{defence}, priority {pcp}"), port, plain.clone(), plain));
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

fn run(on: Level) -> Result<Record, Failure> {
    let domain = domain(&PORTS.map(|(port, defence, _)| (port, defence)));
    let stage = Stage::new(on, &star(5, "300 ms", &domain, &qcn("")), "s0")?;
    let mut script = Script::default();
    for (number, (_, _, frame, _)) in stimuli().into_iter().enumerate() {
        script.at(slot(number), move |bed| bed.send_frame(1, &frame));
    }
    stage.run(script)
}

/// QCN-07.
pub fn tag_removal(on: Level) -> Finding {
    let record = RUN.on(on)?;
    for (number, (what, port, _, expected)) in stimuli().into_iter().enumerate() {
        let here = slot(number)..slot(number + 1);
        let left = record.all_packets().filter(|seen| here.contains(&seen.at));
        let left: Vec<_> = left.map(|seen| (seen.port, &seen.frame.octets)).collect();
        ensure(left == [(port, &expected.octets)], || {
            let left = left.iter().map(|(port, octets)| (*port, octets.len()));
            format!("{what}: {:?} leave", left.collect::<Vec<_>>())
        })?;
    }
    record.nothing_lost(&[])?;
    Ok("removed at edge and interior, not an octet else; kept inside, and on every other priority"
        .to_owned())
}

/// QCN-08: tagged frames of each priority on their way in past each defence.
pub fn defence_modes(on: Level) -> Finding {
    // Of priority 3 the alternate is the next lower one.
    const OWED: [(u8, &str, u8); 4] =
        [(1, "disabled", 3), (2, "edge", 2), (3, "interior", 3), (4, "interior-ready", 3)];
    let domain = domain(&OWED.map(|(port, defence, _)| (port, defence)));
    let stage = Stage::new(on, &star(5, "500 ms", &domain, &qcn("")), "s0")?;
    let mut script = Script::default();
    for (port, pcp) in (1..=4).flat_map(|port| (0..8).map(move |pcp| (port, pcp))) {
        let frame = with_flow(sent(port.into(), 5, pcp, LENGTH), FLOW);
        let at = slot(usize::from(port - 1) * 8 + usize::from(pcp));
        script.at(at, move |bed| bed.send_frame(port, &frame));
    }
    let record = stage.run(script)?;
    let mut left = record.packets(5);
    for (_, defence, owed) in OWED {
        for pcp in 0..8 {
            let seen = left.next().ok_or_else(|| format!("{defence}: a frame is missing"))?;
            let found = marks(&seen.frame)?.map(|(pcp, _)| pcp);
            let expected = if pcp == CNPV { owed } else { pcp };
            ensure(found == Some(expected), || {
                format!("{defence}, {pcp}: {found:?}, expected {expected}")
            })?;
        }
    }
    same("frames more", left.count(), 0)?;
    Ok("edge remaps 3 to 2; disabled, interior and interior-ready keep it".to_owned())
}
