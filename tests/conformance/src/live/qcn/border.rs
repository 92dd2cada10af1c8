//! QCN-07 live: frames with a CN-TAG on their way out of a domain.

use super::{qcn, star};
use crate::bench::packets::congestion::{CNPV, sent, with_flow};
use crate::case::{Failure, Finding, ensure};
use crate::live::cached::Cached;
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::stimulus::slot;
use crate::live::tester::Script;
use proto::frame::Frame;

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);

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

fn run() -> Result<Record, Failure> {
    let ports = PORTS
        .map(|(port, defence, _)| format!("{{ at = \"s0:{port}\", defence = \"{defence}\" }}, "));
    let domain = format!("cnpv = [{CNPV}], ports = [{}]", ports.concat());
    let stage = Stage::new(&star(5, "300 ms", &domain, &qcn("")), "s0")?;
    let mut script = Script::default();
    for (number, (_, _, frame, _)) in stimuli().into_iter().enumerate() {
        script.at(slot(number), move |tester| tester.send_frame(1, &frame));
    }
    stage.run(script)
}

/// QCN-07.
pub fn tag_removal() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
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
