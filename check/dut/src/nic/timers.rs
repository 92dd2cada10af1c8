//! TIM: retransmission after a timeout and after RNR NAKs, and their limits.

use super::pair::{Pair, Terms, names};
use super::{Got, Nic, Scripts};
use crate::verdict::{Check, Fault, must};
use proto::units::Duration;
use proto::wire::infiniband::Syndrome;
use verbs::work::{Operation, Status};

pub(super) const SCRIPTS: Scripts = &[
    ("TIM-01", repeats),
    ("TIM-02", interval),
    ("TIM-03", retries),
    ("TIM-04", progress),
    ("TIM-05", not_ready),
    ("TIM-06", waits),
    ("TIM-07", rnr_retries),
    ("TIM-08", no_repeat),
    ("TIM-09", steady),
];

/// A timeout of 67 ms and one of 268 ms, as codes.
const SHORT: u8 = 14;
const LONG: u8 = 16;
/// The RNR timer of 163.84 ms, and one of 0.64 ms. Source: IBTA Vol 1, table 45.
const RNR_LONG: (u8, u64) = (28, 163_840);
const RNR_SHORT: u8 = 12;

/// The time of a code. Source: IBTA Vol 1, 9.7.6.1.3.
fn timeout(code: u8) -> Duration {
    Duration::from_ns(4_096 << code)
}

fn in_ms(time: Duration) -> u64 {
    time.as_ps() / 1_000_000_000
}

fn part(time: Duration, percent: u64) -> Duration {
    Duration::from_ps(time.as_ps() / 100 * percent)
}

/// A pair that has sent one SEND, and when.
fn unanswered(nic: &mut Nic<'_>, terms: Terms) -> Check<(Pair, usize, Got)> {
    let pair = nic.connect(terms)?;
    let mark = nic.mark();
    nic.post(&pair, Operation::Send, 1, 32)?;
    let got = nic.first(mark, 1)?;
    let first = got.first().cloned().ok_or_else(|| Fault::fail("a SEND is not sent"))?;
    Ok((pair, mark, first))
}

fn repeats(nic: &mut Nic<'_>) -> Check {
    let (pair, mark, first) = unanswered(nic, Terms { timeout: SHORT, ..Terms::default() })?;
    let got = nic.first(mark, 2)?;
    must!(got.len() >= 2, "without an answer it comes once");
    must!(
        got[1].bth.psn == first.bth.psn && got[1].payload == first.payload,
        "it repeats {}",
        names(&got[1..])
    );
    nic.acknowledge(&pair, first.bth.psn, 1)?;
    let sent = nic.sent(&pair, 1)?;
    must!(
        sent.first().is_some_and(|done| done.status == Status::Success),
        "it completes as {sent:?}"
    );
    Ok("without an answer the packet comes again, and completes when it is acknowledged".to_owned())
}

fn interval(nic: &mut Nic<'_>) -> Check {
    let (pair, mark, _) = unanswered(nic, Terms { timeout: SHORT, ..Terms::default() })?;
    let got = nic.first(mark, 3)?;
    must!(got.len() >= 3, "it comes {} times", got.len());
    nic.acknowledge(&pair, pair.out_psn(0), 1)?;
    let gaps = [got[1].at.since(got[0].at), got[2].at.since(got[1].at)];
    let (least, most) = (part(timeout(SHORT), 95), timeout(SHORT) * 4);
    let text = format!(
        "after {} and {} ms; the timeout is {} ms",
        in_ms(gaps[0]),
        in_ms(gaps[1]),
        in_ms(timeout(SHORT))
    );
    // What was read late makes the next interval shorter.
    let doubt = nic.line.pace.doubt();
    must!(gaps.iter().all(|gap| *gap + doubt >= least), "too early: {text}");
    if gaps.iter().any(|gap| *gap > most + nic.file.tolerance.quiet) {
        return Err(Fault::unclear(format!("late: {text}")));
    }
    Ok(format!("it comes again {text}"))
}

fn retries(nic: &mut Nic<'_>) -> Check {
    const RETRIES: u8 = 2;
    let terms = Terms { timeout: SHORT, retry_count: RETRIES, ..Terms::default() };
    let (pair, mark, _) = unanswered(nic, terms)?;
    let sent = nic.sent(&pair, 1)?;
    must!(
        sent.first().is_some_and(|done| done.status == Status::RetriesExceeded),
        "it completes as {sent:?}"
    );
    let got = nic.during(mark, timeout(SHORT) * 2)?;
    must!(
        got.len() == usize::from(RETRIES) + 1,
        "{} transmissions with a retry count of {RETRIES}",
        got.len()
    );
    Ok(format!("{} transmissions, and then the error", got.len()))
}

fn progress(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms { timeout: LONG, ..Terms::default() })?;
    let mark = nic.mark();
    nic.post(&pair, Operation::Send, 1, 32)?;
    nic.post(&pair, Operation::Send, 2, 32)?;
    let got = nic.first(mark, 2)?;
    must!(got.len() == 2, "two SENDs are not sent");
    let began = got[1].at;
    let early = part(timeout(LONG), 70);
    let passed = nic.line.now().since(began);
    if passed > early {
        return Err(Fault::unclear(format!("{} ms have passed already", in_ms(passed))));
    }
    nic.during(mark, Duration::from_ps(early.as_ps() - passed.as_ps()))?;
    let acknowledged = nic.line.now();
    nic.acknowledge(&pair, pair.out_psn(0), 1)?;
    let next = nic.mark();
    let got = nic.during(next, part(timeout(LONG), 85))?;
    nic.acknowledge(&pair, pair.out_psn(1), 2)?;
    match got.first() {
        None => Ok(format!(
            "no packet comes again within {} ms after an acknowledgement",
            in_ms(part(timeout(LONG), 85))
        )),
        Some(again) => Err(Fault::deviation(format!(
            "{} comes again {} ms after an acknowledgement; the timeout is {} ms",
            names(&got[..1]),
            in_ms(again.at.since(acknowledged)),
            in_ms(timeout(LONG))
        ))),
    }
}

fn not_ready(nic: &mut Nic<'_>) -> Check {
    let pair = nic.connect(Terms { min_rnr_timer: RNR_SHORT, ..Terms::default() })?;
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    let (syndrome, psn, _) = nic.answer(&pair, mark)?;
    must!(syndrome == Syndrome::Rnr { timer: RNR_SHORT }, "without a receive: {syndrome:?}");
    must!(psn == pair.in_psn(0), "PSN {:06x}", psn.get());
    nic.post_receives(&pair, 1)?;
    let mark = nic.mark();
    nic.send(&pair.message(0))?;
    let (syndrome, ..) = nic.answer(&pair, mark)?;
    must!(matches!(syndrome, Syndrome::Ack { .. }), "with a receive: {syndrome:?}");
    Ok("an RNR NAK with the timer asked for; the repetition is taken".to_owned())
}

fn waits(nic: &mut Nic<'_>) -> Check {
    let (pair, _, first) = unanswered(nic, Terms::default())?;
    let mark = nic.mark();
    let asked = nic.line.now();
    nic.refuse(&pair, Syndrome::Rnr { timer: RNR_LONG.0 }, first.bth.psn)?;
    let got = nic.first(mark, 1)?;
    must!(!got.is_empty(), "after an RNR NAK it does not come again");
    nic.acknowledge(&pair, first.bth.psn, 1)?;
    let (took, least) = (got[0].at.since(asked), Duration::from_us(RNR_LONG.1));
    must!(
        took >= part(least, 95),
        "it comes again after {} ms, asked for {} ms",
        in_ms(took),
        in_ms(least)
    );
    Ok(format!("it comes again after {} ms, asked for {} ms", in_ms(took), in_ms(least)))
}

fn rnr_retries(nic: &mut Nic<'_>) -> Check {
    const RETRIES: u8 = 2;
    let (pair, _, first) = unanswered(nic, Terms { rnr_retry: RETRIES, ..Terms::default() })?;
    let mut transmissions = 1;
    loop {
        let mark = nic.mark();
        nic.refuse(&pair, Syndrome::Rnr { timer: RNR_SHORT }, first.bth.psn)?;
        let got = nic.during(mark, nic.file.tolerance.quiet * 2)?;
        if got.is_empty() || transmissions > 9 {
            break;
        }
        transmissions += 1;
    }
    let sent = nic.sent(&pair, 1)?;
    must!(
        sent.first().is_some_and(|done| done.status == Status::RnrRetriesExceeded),
        "it completes as {sent:?}"
    );
    must!(
        transmissions == u32::from(RETRIES) + 1,
        "{transmissions} transmissions with an RNR retry count of {RETRIES}"
    );
    Ok(format!("{transmissions} transmissions, and then the error"))
}

fn no_repeat(nic: &mut Nic<'_>) -> Check {
    let (pair, _, first) = unanswered(nic, Terms { timeout: SHORT, ..Terms::default() })?;
    nic.acknowledge(&pair, first.bth.psn, 1)?;
    let mark = nic.mark();
    let got = nic.during(mark, timeout(SHORT) * 3)?;
    must!(got.is_empty(), "an acknowledged packet comes again: {}", names(&got));
    let sent = nic.sent(&pair, 1)?;
    must!(sent.len() == 1, "{} completions", sent.len());
    Ok("an acknowledged packet does not come again".to_owned())
}

/// One request after the other, each acknowledged long before its timeout.
fn steady(nic: &mut Nic<'_>) -> Check {
    const REQUESTS: u32 = 20;
    let delay = Duration::from_us(15_000);
    let pair = nic.connect(Terms { timeout: SHORT, ..Terms::default() })?;
    let mut again = Vec::new();
    for n in 0..REQUESTS {
        let mark = nic.mark();
        nic.post(&pair, Operation::Send, u64::from(n), 32)?;
        nic.first(mark, 1)?;
        nic.during(mark, delay)?;
        let got = nic.got(mark);
        let took = got.first().map_or(Duration::ZERO, |first| nic.line.now().since(first.at));
        if took > timeout(SHORT) {
            return Err(Fault::unclear(format!("the tester took {} ms to answer", in_ms(took))));
        }
        if got.len() > 1 {
            again.push(in_ms(got[1].at.since(got[0].at)));
        }
        nic.acknowledge(&pair, pair.out_psn(n), n + 1)?;
    }
    if again.is_empty() {
        return Ok(format!(
            "none of {REQUESTS} requests comes again, each acknowledged after {} ms",
            in_ms(delay)
        ));
    }
    Err(Fault::deviation(format!(
        "{} of {REQUESTS} requests come again, after {again:?} ms; the timeout is {} ms",
        again.len(),
        in_ms(timeout(SHORT))
    )))
}
