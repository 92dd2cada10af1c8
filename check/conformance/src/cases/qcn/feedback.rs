//! QCN-01, QCN-02, QCN-04: what a congestion point reports of a queue, and when.

use super::{congestion_point, frame};
use crate::prelude::*;
use proto::congestion::{CnmBody, CongestionPoint, Marking, Notification, QueueSample};

/// cpQSp and W of the case, and the largest feedback they allow.
const SET_POINT: i64 = 26_000;
const WEIGHT: i64 = 2;
const LARGEST: i64 = (2 * WEIGHT + 1) * SET_POINT;

/// More than an interval between samples.
const MANY: Bytes = Bytes::new(200_000);

/// A frame of `size` comes to a queue of so many octets.
fn come(point: &mut dyn CongestionPoint, size: Bytes, queue: i64) -> Result<Option<CnmBody>> {
    let sample = QueueSample {
        ingress: PortNumber::from_index(1),
        queue: Bytes::new(queue.unsigned_abs()),
        ingress_buffer: Bytes::ZERO,
        line_rate: super::LINE,
        blocked_since: None,
        last_departure: None,
    };
    match point.on_enqueue(&frame(size), &sample, Instant::ZERO) {
        Marking::Notify(Notification::Cnm(body)) => Ok(Some(body)),
        Marking::Pass => Ok(None),
        other => Err(format!("a congestion point of QCN returned {other:?}").into()),
    }
}

/// The queue was `before` at one sample and is `queue` at the next: what is reported then.
fn after(before: i64, queue: i64) -> Result<Option<CnmBody>> {
    let mut point = congestion_point("")?;
    come(&mut *point, MANY, before)?;
    come(&mut *point, MANY, queue)
}

/// The case's formula, as it is written there.
fn expected(before: i64, queue: i64) -> u8 {
    let feedback = (SET_POINT - queue) - WEIGHT * (queue - before);
    let share = (-feedback).clamp(0, LARGEST) as f64 / LARGEST as f64;
    (63.0 * share).round() as u8
}

/// QCN-01.
pub fn value(_: Level) -> Finding {
    let mut sent = 0;
    let queues = (0..=200).map(|n| n * 1_000);
    for before in queues.clone() {
        for queue in queues.clone() {
            let found = after(before, queue)?.map_or(0, |body| body.quantized_feedback);
            let due = expected(before, queue);
            sent += u32::from(found > 0);
            ensure!(found == due, "{before} to {queue}: {found}, expected {due}");
        }
    }
    let vector = after(26_000, 52_000)?.map(|body| body.quantized_feedback);
    ensure!(vector == Some(38), "26000 to 52000 is {vector:?}, expected 38");
    Ok(format!(
        "{} pairs of queues exact, {sent} of them with a message; 26000 to 52000 is 38",
        201 * 201
    ))
}

/// QCN-02.
pub fn interval(_: Level) -> Finding {
    const STEP: u64 = 64;
    const INTERVALS: u64 = 4_000;
    let bases = [150_000u64, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500];
    let mut worst = 0f64;
    for (band, base) in bases.into_iter().enumerate() {
        // The middle of the band, with a queue of constant length: Fb = cpQSp − q.
        let quantized = (band as i64 * 8 + 4).min(63);
        let queue = SET_POINT + quantized * LARGEST / 63;
        let mut point = congestion_point("cp_q_sp = \"26000 B\"")?;
        let next = |point: &mut dyn CongestionPoint| -> Result<u64> {
            for n in 1..=200_000 / STEP {
                if come(point, Bytes::new(STEP), queue)?.is_some() {
                    return Ok(n * STEP);
                }
            }
            Err("no sample in 200 KB".into())
        };
        next(&mut *point)?;
        // What the first sample found is of a queue that has just grown; the second is the band's.
        next(&mut *point)?;
        let mut sum = 0;
        for _ in 0..INTERVALS {
            let octets = next(&mut *point)?;
            sum += octets;
            let range = base * 85 / 100..=base * 115 / 100 + STEP;
            ensure!(range.contains(&octets), "band {band}: {octets} of {base}");
        }
        // Half a frame is due to the resolution.
        let mean = sum as f64 / INTERVALS as f64 - STEP as f64 / 2.0;
        let off = (mean / base as f64 - 1.0).abs();
        worst = worst.max(off);
        ensure!(off <= 0.02, "band {band}: {mean:.0} in the mean, expected {base}");
    }
    Ok(format!("8 bands of {INTERVALS} intervals, means off by {:.2} % at most", worst * 100.0))
}

/// QCN-04.
pub fn fields(_: Level) -> Finding {
    let cases = [
        (26_000, 52_000, (-406, 406)),
        (16_336, 25_936, (1, 150)),
        (70_000, 60_000, (-531, -156)),
        (0, 9_000_000, (i16::MIN, i16::MAX)),
    ];
    for (before, queue, due) in cases {
        let found = after(before, queue)?.map(|body| (body.q_offset, body.q_delta));
        ensure!(found == Some(due), "{before} to {queue}: {found:?}, expected {due:?}");
    }
    Ok("both signs of both fields, and saturation".into())
}
