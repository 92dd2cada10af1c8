//! QOS-06 to QOS-10 live: how much may wait, who has room of its own, what is remembered of it, and
//! what a daemon refuses.

use super::OUT;
use crate::bench::devices::MTU;
use crate::bench::packets::ethernet::{data, ecn, frame, roce, with_ecn};
use crate::case::{Failure, Finding, ensure, same};
use crate::live::cached::Cached;
use crate::live::ethernet::{
    FRAME, HEADROOM_FRAMES, LONG, LOSSLESS, SHARED_FRAMES, memory, roomy, star,
};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::tester::{Script, Tester};
use crate::live::{ms, us};
use proto::counters::DropReason;
use proto::ids::Ecn;
use proto::units::{Bytes, Duration, Instant};

static LIMIT: Cached<Record> = Cached::new(limited, |record| record.fidelity.ok);
static RESERVE: Cached<Record> = Cached::new(reserved, |record| record.fidelity.ok);
static MARKS: Cached<Record> = Cached::new(watermarked, |record| record.fidelity.ok);
static LOSSLESS_RUN: Cached<Record> = Cached::new(over_kmax, |record| record.fidelity.ok);

/// A priority that may lose frames.
const LOSSY: u8 = 1;
/// When ways out are shut, when frames come, and when they may go.
const SHUT: Instant = ms(100);
const COME: Instant = ms(120);
const OPEN: Instant = ms(400);

fn feed(tester: &mut Tester, (from, to): (u8, u8), priority: u8, count: u64) {
    for psn in 0..count {
        tester.send_frame(from, &data(from.into(), to.into(), priority, psn as u32));
    }
}

/// QOS-06: frames that one lossy queue holds.
const QUEUE: u64 = 20;

fn limited() -> Result<Record, Failure> {
    let pool = format!(", lossy_queue = \"{} B\"", QUEUE * FRAME + FRAME / 2);
    let room = memory((100, HEADROOM_FRAMES), "", &pool);
    let stage = Stage::new(&star(OUT, "700 ms", "", &room), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| tester.pfc(OUT, 0xff, LONG));
    script.at(COME, |tester| {
        [1, 2].iter().for_each(|from| feed(tester, (*from, OUT), LOSSY, QUEUE / 2))
    });
    script.at(BEYOND, |tester| [1, 2].iter().for_each(|from| feed(tester, (*from, OUT), LOSSY, 1)));
    // Neither another queue nor what is lossless knows of the limit.
    script.at(ms(200), |tester| feed(tester, (1, OUT), LOSSY + 1, QUEUE));
    script.at(ms(200), |tester| feed(tester, (3, OUT), LOSSLESS, QUEUE + 2));
    script.at(OPEN, |tester| tester.pfc(OUT, 0xff, 0));
    stage.run(script)
}

const BEYOND: Instant = ms(170);

/// QOS-06.
pub fn lossy_queue_limit() -> Finding {
    let record = LIMIT.get()?;
    let record = record.trusted()?;
    let early = record.dropped(OUT, SHUT, BEYOND);
    ensure(early.is_empty(), || format!("{early:?} dropped within the limit"))?;
    same("losses at the output", record.lost(OUT), "queue_full 2".to_owned())?;
    record.nothing_lost(&[OUT])?;
    let control: usize = (1..=OUT).map(|port| record.control(port).count()).sum();
    same("frames of MAC control", control, 0)?;
    for (priority, expected) in [(LOSSY, QUEUE), (LOSSY + 1, QUEUE), (LOSSLESS, QUEUE + 2)] {
        let left = record.data(OUT, priority).count() as u64;
        same(format!("frames of priority {priority} that leave"), left, expected)?;
    }
    Ok(format!("{QUEUE} frames fit, the next from either input is lost at the output; no PFC"))
}

/// QOS-07: octets shared by all, and reserved for each port and priority, in full frames.
const SHARED: u64 = 20;
const OWN: u64 = 2;
/// When the greedy one has taken all, and when each other fills its own.
const GREEDY: Instant = ms(120);
const OTHERS: Instant = ms(190);
const OTHERS_EVERY: Duration = us(7_000);

fn others() -> impl Iterator<Item = (u64, u8, u8)> {
    let all = (1..=3u8).flat_map(|port| (0..8u8).map(move |priority| (port, priority)));
    let others = all.filter(|one| *one != (1, LOSSY));
    (0..).zip(others).map(|(number, (port, priority))| (number, port, priority))
}

fn reserved() -> Result<Record, Failure> {
    let reserves = u64::from(OUT) * (8 * OWN + HEADROOM_FRAMES);
    let room = format!(
        "switch = {{ memory = \"shared-pool\", headroom = \"{} B\", jitter = \"0 ns\", pool = \
         {{ size = \"{} B\", reserve = \"{} B\", threshold = \"{} B\", hysteresis = \"0 B\" }} }}\n",
        HEADROOM_FRAMES * FRAME,
        (reserves + SHARED) * FRAME,
        OWN * FRAME,
        SHARED * FRAME
    );
    let stage = Stage::new(&star(OUT, "500 ms", "", &room), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| tester.pfc(OUT, 0xff, LONG));
    script.at(GREEDY, |tester| feed(tester, (1, OUT), LOSSY, OWN + SHARED + 10));
    for (number, port, priority) in others() {
        let at = OTHERS + OTHERS_EVERY * number;
        script.at(at, move |tester| feed(tester, (port, OUT), priority, OWN + 1));
    }
    stage.run(script)
}

/// QOS-07.
pub fn reserve() -> Finding {
    let record = RESERVE.get()?;
    let record = record.trusted()?;
    let lost = record.dropped(1, GREEDY, OTHERS);
    ensure(lost == [DropReason::BufferFull; 10], || format!("the greedy one loses {lost:?}"))?;
    for (number, port, priority) in others() {
        let from = OTHERS + OTHERS_EVERY * number;
        let lost = record.dropped(port, from, from + OTHERS_EVERY);
        // Its reserve holds two; the third is lost, or is headroom's.
        let expected = usize::from(priority != LOSSLESS);
        ensure(lost == vec![DropReason::BufferFull; expected], || {
            format!("priority {priority} of port {port} loses {lost:?}, expected {expected}")
        })?;
    }
    for port in 1..=3 {
        let asked = record.asked(port, LOSSLESS).len();
        same(format!("XOFFs to port {port}"), asked, 1)?;
    }
    let groups = others().count();
    Ok(format!(
        "one takes the {SHARED} shared frames; each of {groups} others has its reserve of {OWN}, then the \
         lossy lose and the lossless ask for silence"
    ))
}

/// QOS-08: frames that wait at each of so many inputs: below the threshold, at it, in headroom, to its end.
const STEPS: [u64; 5] = [2, 5, 8, 10, 12];

fn watermarked() -> Result<Record, Failure> {
    let room = memory((SHARED_FRAMES, HEADROOM_FRAMES), "", "");
    let stage = Stage::new(&star(10, "600 ms", "", &room), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| (6..=10).for_each(|port| tester.pfc(port, 0xff, LONG)));
    for (port, frames) in (1..).zip(STEPS) {
        script.at(COME, move |tester| feed(tester, (port, port + 5), LOSSLESS, frames));
    }
    script.at(OPEN, |tester| (6..=10).for_each(|port| tester.pfc(port, 0xff, 0)));
    stage.run(script)
}

/// QOS-08.
pub fn watermarks_stay() -> Finding {
    let record = MARKS.get()?;
    let record = record.trusted()?;
    for (port, frames) in (1..).zip(STEPS) {
        let shared = frames.min(SHARED_FRAMES) * FRAME;
        let headroom = frames.saturating_sub(SHARED_FRAMES) * FRAME;
        let name = |what: &str| format!("pg{LOSSLESS}_{what}_watermark");
        same(format!("{frames} frames: shared"), record.named(port, &name("shared")), shared)?;
        same(
            format!("{frames} frames: headroom"),
            record.named(port, &name("headroom")),
            headroom,
        )?;
        let queue = record.port(port + 5).lanes[usize::from(LOSSLESS)].counters.out_queue;
        same(format!("{frames} frames: queue"), queue.max, frames * FRAME)?;
        same(format!("{frames} frames: queue at the end"), queue.value, 0)?;
    }
    let all: u64 = STEPS.iter().sum::<u64>() * FRAME;
    let headroom: u64 = STEPS.iter().map(|frames| frames.saturating_sub(SHARED_FRAMES)).sum();
    same("buffer_pool_watermark", record.named(1, "buffer_pool_watermark"), all)?;
    same("headroom_pool_watermark", record.named(1, "headroom_pool_watermark"), headroom * FRAME)?;
    record.nothing_lost(&[])?;
    Ok(format!(
        "groups of {STEPS:?} frames: group, headroom, queue and pool to the octet, after all has left"
    ))
}

/// QOS-09: Kmin, Kmax and the limit of lossy queues, in frames.
const KMIN: u64 = 2;
const KMAX: u64 = 4;
const CODES: [Ecn; 3] = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1];

fn over_kmax() -> Result<Record, Failure> {
    let pool = format!(", lossy_queue = \"{} B\"", 3 * FRAME);
    let rest = format!(
        "{}[scheme]\nkind = \"dcqcn\"\nkmin = \"{} B\"\nkmax = \"{} B\"\n",
        memory((SHARED_FRAMES, HEADROOM_FRAMES), "", &pool),
        KMIN * FRAME,
        KMAX * FRAME
    );
    let stage = Stage::new(&star(5, "600 ms", "", &rest), "s0")?;
    let mut script = Script::default();
    script.at(SHUT, |tester| tester.pfc(OUT, 0xff, LONG));
    for (from, code) in (1..).zip(CODES) {
        script.at(COME, move |tester| {
            for psn in 0..(SHARED_FRAMES + HEADROOM_FRAMES) as u32 {
                let builder = with_ecn(&roce(from, OUT.into(), LOSSLESS, psn), code);
                tester.send_frame(from as u8, &frame(&builder, MTU));
            }
        });
    }
    script.at(COME, |tester| feed(tester, (5, OUT), LOSSY, 10));
    script.at(OPEN, |tester| tester.pfc(OUT, 0xff, 0));
    stage.run(script)
}

/// QOS-09.
pub fn lossless_is_never_dropped() -> Finding {
    let record = LOSSLESS_RUN.get()?;
    let record = record.trusted()?;
    let all = 3 * (SHARED_FRAMES + HEADROOM_FRAMES) as usize;
    let left: Vec<_> = record.data(OUT, LOSSLESS).collect();
    same("lossless frames that leave", left.len(), all)?;
    let mut marked = 0;
    for (number, seen) in left.iter().enumerate() {
        let octets = &seen.frame.octets;
        let from = usize::from(octets.get(11).copied().unwrap_or(1).max(1)) - 1;
        let code = CODES.get(from).copied().ok_or_else(|| "a frame of nobody".to_owned())?;
        let is_marked = ecn(&seen.frame) == Ecn::CongestionExperienced;
        if all - number > KMAX as usize {
            same(format!("CE on frame {number} of {code:?}"), is_marked, code != Ecn::NotCapable)?;
        }
        marked += u64::from(is_marked);
    }
    same("lossy frames that fit", record.data(OUT, LOSSY).count(), 3)?;
    same("losses at the output", record.lost(OUT), "queue_full 7".to_owned())?;
    record.nothing_lost(&[OUT])?;
    Ok(format!(
        "{all} lossless frames over Kmax and over the limit of lossy queues: none lost, {marked} marked; a \
         lossy queue ends at its limit"
    ))
}

/// QOS-10: the daemon itself refuses what a scenario would not have let through.
pub fn zero_headroom() -> Finding {
    let scenario = |headroom: &str| {
        let good = roomy("");
        let (before, after) = good.split_once("headroom = \"").unwrap_or_default();
        let after = after.split_once('"').map_or("", |(_, after)| after);
        star(2, "100 ms", "", &format!("{before}headroom = \"{headroom}\"{after}"))
    };
    let Err(Failure::Failed(told)) = Stage::new(&scenario("0 B"), "s0") else {
        return Err("a scenario without headroom is good".to_owned().into());
    };
    ensure(told.contains("headroom"), || format!("a scenario without headroom is told: {told}"))?;
    let stage = Stage::new(&star(2, "100 ms", "", &roomy("")), "s0")?;
    stage.run(Script::default())?;
    let stage = Stage { switch: |config| config.memory.headroom = Bytes::ZERO, ..stage };
    match stage.run(Script::default()) {
        // It says why itself; 2 is what it ends with if its configuration is no good. With headroom it ran.
        Err(Failure::Failed(told)) if told.contains("exit status: 2") => {
            Ok("refused by the scenario, and by switchd before it begins".to_owned())
        }
        Err(other) => Err(Failure::Failed(format!("switchd without headroom ends so: {other:?}"))),
        Ok(_) => Err(Failure::Failed("switchd runs without headroom".to_owned())),
    }
}
