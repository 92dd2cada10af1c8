//! PFCWD-08 live: a link that goes down while a pause is in force, and comes up.

use super::{feed, guarded, told};
use crate::bench::packets::ethernet::data;
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{LONG, LOSSLESS, SHARED_FRAMES, start};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::Script;
use crate::live::{ms, us};
use proto::units::Instant;

static RUN: Cached<Record> = Cached::new(run, |record| record.fidelity.ok);

/// Two seconds, of a pause of 3.36 s. Source: the case.
const UP_AGAIN: Instant = ms(2_130);

fn run() -> Result<Record, Failure> {
    let outage = "[[outage]]\nat = \"s0:2\"\nfrom = \"130 ms\"\nto = \"2130 ms\"\n";
    let text = format!("{}{outage}", guarded(2, "2400 ms", "drop"));
    let stage = Stage::new(&text, "s0")?;
    let mut script = Script::default();
    script.at(ms(105), |tester| tester.pfc(2, 1 << LOSSLESS, LONG));
    script.at(ms(106), |tester| feed(tester, (1, 2), LOSSLESS, SHARED_FRAMES));
    script.at(ms(1_000), |tester| tester.send_frame(2, &data(2, 1, LOSSLESS, 0)));
    stage.run(script)
}

/// PFCWD-08.
pub fn is_no_storm() -> Finding {
    let record = RUN.get()?;
    let record = record.trusted()?;
    let (begun, _) = told(record, 2);
    ensure(begun.is_empty(), || format!("a storm was found at {begun:?}"))?;
    same("frames while it is down", record.data_within(2, LOSSLESS, (Instant::ZERO, UP_AGAIN)), 0)?;
    let starts: Vec<Instant> = record.data(2, LOSSLESS).map(start).collect();
    same("frames afterwards", starts.len() as u64, SHARED_FRAMES)?;
    let late = starts[0].since(UP_AGAIN);
    ensure(late <= record.twice_late() + us(100), || {
        format!("the first frame starts {late} after the link is up: is it still paused?")
    })?;
    same("what the port has lost", record.lost(2), "link_state 1".to_owned())?;
    record.nothing_lost(&[2])?;
    Ok(format!(
        "2 s down in a pause of 3.4 s: no storm, {SHARED_FRAMES} frames kept, sent {} us after it is up",
        late.as_ps() / 1_000_000
    ))
}
