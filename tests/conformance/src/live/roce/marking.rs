//! ROCE-01, ROCE-03, ROCE-04 live, and what ROCE-06 and ROCE-16 ask of a switch.

use super::dcqcn;
use crate::bench::packets::ethernet::{cnp, data, ecn, frame, roce};
use crate::case::{Failure, Finding, ensure, same};
use crate::groups::roce::marking::{KINDS, of_kind};
use crate::groups::roce::notices::is_cnp;
use crate::groups::roce::refusal::odd;
use crate::live::cached::Cached;
use crate::live::ethernet::{DELAY, FRAME_TIME, LONG, LOSSLESS, OCTET, roomy, star, start};
use crate::live::record::Record;
use crate::live::stage::Stage;
use crate::live::stimulus::slot;
use crate::live::tester::{Script, Tester};
use crate::live::{ms, us};
use proto::frame::Frame;
use proto::ids::Ecn;
use proto::units::{Duration, Instant};

static ALL: Cached<Record> = Cached::new(marks_all, |record| record.fidelity.ok);
static HELD: Cached<Record> = Cached::new(held, |record| record.fidelity.ok);
static BURST: Cached<Record> = Cached::new(burst, |record| record.fidelity.ok);

/// The way out, and whose frames go there.
const OUT: u8 = 4;
const CE: Ecn = Ecn::CongestionExperienced;

fn is_marked(frame: &Frame) -> bool {
    ecn(frame) == CE
}

/// What reaches a switch that marks all it may, and what must leave it; none if nothing may.
fn stimuli() -> Vec<(String, Frame, Result<Frame, &'static str>)> {
    let codes = [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, CE];
    let mut all = Vec::new();
    for kind in KINDS {
        for code in codes {
            let expected = if code == Ecn::NotCapable { code } else { CE };
            let name = format!("{} of {code:?}", kind.0);
            all.push((name, of_kind(kind, code), Ok(of_kind(kind, expected))));
        }
    }
    for odd in odd() {
        let leaves = odd.at_switch.map_or_else(|| Ok(odd.frame.clone()), Err);
        all.push((format!("a packet {}", odd.what), odd.frame, leaves));
    }
    all
}

/// Where packets that are not quite RoCE begin among the stimuli.
fn first_odd() -> usize {
    stimuli().len() - odd().len()
}

/// When data is queued for a port, how much of it, and how many CNPs come beside it, how far apart.
const QUEUED: Instant = ms(420);
const DATA: u64 = 60;
const NOTICES: u64 = 20;
const NOTICE_EVERY: Duration = us(2_200);
/// When a queue of CNPs alone is opened.
const ALONE: (Instant, u64) = (ms(600), 50);

fn marks_all() -> Result<Record, Failure> {
    let rest = format!("{}{}", roomy(""), dcqcn("kmin = \"0 B\"\nkmax = \"0 B\""));
    let stage = Stage::new(&star(OUT, "760 ms", "", &rest), "s0")?;
    let mut script = Script::default();
    for (number, (_, frame, _)) in stimuli().into_iter().enumerate() {
        script.at(slot(number), move |tester| tester.send_frame(1, &frame));
    }
    script.at(QUEUED, |tester| {
        for psn in 0..DATA as u32 {
            for from in [1, 3] {
                tester.enqueue(from, data(from.into(), OUT.into(), LOSSLESS, psn).octets);
            }
        }
    });
    for number in 0..NOTICES {
        let at = QUEUED + us(20_000) + NOTICE_EVERY * number;
        script.at(at, |tester| tester.send_frame(2, &cnp(2, OUT.into())));
    }
    script.at(ALONE.0, |tester| {
        (0..ALONE.1).for_each(|_| tester.send_frame(2, &cnp(2, 3)));
    });
    stage.run(script)
}

/// What became of the stimuli in `range`; how many there were.
fn judge(range: std::ops::Range<usize>) -> Result<usize, Failure> {
    let record = ALL.get()?;
    let record = record.trusted()?;
    for (number, (what, _, expected)) in stimuli().into_iter().enumerate() {
        if !range.contains(&number) {
            continue;
        }
        let (from, to) = (slot(number), slot(number + 1));
        let left = record.all_packets().filter(|seen| seen.at >= from && seen.at < to);
        let left: Vec<_> = left.map(|seen| (seen.port, &seen.frame.octets)).collect();
        let lost: Vec<_> = record.dropped(1, from, to).iter().map(|reason| reason.name()).collect();
        let holds = match &expected {
            Ok(frame) => left == [(OUT, &frame.octets)] && lost.is_empty(),
            Err(reason) => left.is_empty() && lost == [*reason],
        };
        ensure(holds, || format!("{what}: {} frames leave, lost for {lost:?}", left.len()))?;
    }
    Ok(range.len())
}

/// ROCE-04.
pub fn code_points() -> Finding {
    let count = judge(0..first_odd())?;
    Ok(format!(
        "{count} packets over IPv4 and IPv6, tagged, to other UDP ports, and ACKs: Not-ECT stays, ECT(0) and \
         ECT(1) become CE, CE stays, and not a bit else changes but the IPv4 checksum"
    ))
}

/// ROCE-16, the switch: how many kinds pass or end there as they must.
///
/// # Errors
/// The first that does not.
pub fn not_roce() -> Result<usize, Failure> {
    judge(first_odd()..stimuli().len())
}

/// ROCE-06, the switch: the longest wait of a CNP behind marked data.
///
/// # Errors
/// If one is changed, or waits for more than the frame on the line.
pub fn notices_pass() -> Result<Duration, Failure> {
    let record = ALL.get()?;
    let record = record.trusted()?;
    let sent = cnp(2, OUT.into());
    let left: Vec<_> = record.packets(OUT).filter(|seen| is_cnp(&seen.frame)).collect();
    same("CNPs that leave", left.len() as u64, NOTICES)?;
    let own = sent.line_size().get();
    let mut longest = Duration::ZERO;
    for (number, seen) in (0u64..).zip(&left) {
        ensure(seen.frame.octets == sent.octets, || format!("CNP {number} leaves changed"))?;
        let came = QUEUED + us(20_000) + NOTICE_EVERY * number + OCTET * own + DELAY;
        longest = longest.max(start(seen).since(came));
    }
    let most = FRAME_TIME + record.twice_late() + us(100);
    ensure(longest <= most, || format!("a CNP waits {longest} in the switch"))?;
    let marked = record.data(OUT, LOSSLESS).filter(|seen| seen.at >= QUEUED);
    let marked = marked.filter(|seen| is_marked(&seen.frame)).count() as u64;
    same("marked data beside them", marked, 2 * DATA)?;
    let alone = cnp(2, 3);
    let kept = record.packets(3).filter(|seen| seen.frame.octets == alone.octets).count() as u64;
    same("CNPs of a queue of their own that leave unchanged", kept, ALONE.1)?;
    Ok(longest)
}

/// Frames of 318 octets.
const PAYLOAD: usize = 256;
const SIZE: u64 = 318;
/// When ways out are shut, when their queues fill, and when they are opened while more comes.
const SHUT: Instant = ms(100);
const FILL: Instant = ms(110);
const OPEN: Instant = ms(160);
/// ROCE-01: Kmin and Kmax, what stands, and how many go through meanwhile.
const KMIN: u64 = 30;
const KMAX: u64 = 31;
const STANDING: [(u8, u64); 2] = [(3, KMIN * 2 / 3), (6, KMAX * 3 / 2 + 1)];
const THROUGH: usize = 1_000;

fn wait(tester: &mut Tester, (from, to): (u8, u8), count: u64) {
    for psn in 0..count {
        let builder = roce(from.into(), to.into(), LOSSLESS, psn as u32);
        tester.enqueue(from, frame(&builder, PAYLOAD).octets);
    }
}

/// A queue of `standing` frames at `out`, which stays as long while `through` more go through.
fn hold(script: &mut Script, out: u8, standing: u64, through: u64) {
    script.at(SHUT, move |tester| tester.pfc(out, 1 << LOSSLESS, LONG));
    script.at(FILL, move |tester| wait(tester, (out - 2, out), standing));
    script.at(OPEN, move |tester| {
        tester.pfc(out, 1 << LOSSLESS, 0);
        wait(tester, (out - 1, out), through);
    });
}

fn held() -> Result<Record, Failure> {
    let params = format!("kmin = \"{} B\"\nkmax = \"{} B\"", KMIN * SIZE, KMAX * SIZE);
    let rest = format!("{}{}", roomy(""), dcqcn(&params));
    let stage = Stage::new(&star(6, "500 ms", "", &rest), "s0")?;
    let mut script = Script::default();
    STANDING.iter().for_each(|(out, standing)| hold(&mut script, *out, *standing, THROUGH as u64));
    stage.run(script)
}

/// ROCE-01.
pub fn below_and_above() -> Finding {
    let record = HELD.get()?;
    let record = record.trusted()?;
    let marks = STANDING.map(|(port, _)| {
        let through = record.data(port, LOSSLESS).take(THROUGH);
        through.filter(|seen| is_marked(&seen.frame)).count() * 100 / THROUGH
    });
    for (port, standing) in STANDING {
        let left = record.data(port, LOSSLESS).count() as u64;
        same(format!("frames out of port {port}"), left, standing + THROUGH as u64)?;
    }
    same("hundredths marked below Kmin", marks[0], 0)?;
    ensure(marks[1] >= 95, || format!("{} % marked above Kmax", marks[1]))?;
    Ok(format!(
        "Kmin {KMIN} and Kmax {KMAX} frames: {} % of {THROUGH} at {}, {} % at {}",
        marks[0], STANDING[0].1, marks[1], STANDING[1].1
    ))
}

/// ROCE-03: the burst and, in frames, the queue that it goes through and Kmax. Source: the case.
const LIMIT: usize = 2_047;
const QUEUE: u64 = 100;

fn burst() -> Result<Record, Failure> {
    let params = format!("kmin = \"0 B\"\nkmax = \"{} B\"\npmax = 0.05", (QUEUE + 1) * SIZE);
    let rest = format!("{}{}", roomy(""), dcqcn(&params));
    let stage = Stage::new(&star(3, "800 ms", "", &rest), "s0")?;
    let mut script = Script::default();
    hold(&mut script, 3, QUEUE - 1, LIMIT as u64);
    stage.run(script)
}

/// ROCE-03.
pub fn marked_share() -> Finding {
    let record = BURST.get()?;
    let record = record.trusted()?;
    let burst: Vec<_> = record.data(3, LOSSLESS).take(LIMIT).collect();
    same("frames that leave of the burst", burst.len(), LIMIT)?;
    let marked = burst.iter().filter(|seen| is_marked(&seen.frame)).count();
    let permille = marked * 1_000 / LIMIT;
    ensure((30..=70).contains(&permille), || format!("{marked} of {LIMIT} marked"))?;
    Ok(format!("{marked} of {LIMIT} marked, {permille} ‰, where the chance is 50 ‰"))
}
