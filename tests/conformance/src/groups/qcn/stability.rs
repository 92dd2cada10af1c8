//! QCN-11: sources and one output in a closed loop, in steps of a frame time of the output.
//!
//! A second writing-down of the loop, without events: each step the output sends one frame, and a source
//! sends one whenever its reaction point permits.

use super::{FRAME, LINE, congestion_point, frame, reaction_point};
use crate::case::{Failure, Finding, ensure};
use proto::congestion::{CongestionPoint, Marking, Permission, QueueSample, ReactionPoint};
use proto::ids::PortNumber;
use proto::units::{BitRate, Bytes, Instant};

const SET_POINT: f64 = 150_000.0;
const PARAMS: &str = "cp_q_sp = \"150 KB\"";

struct Source {
    point: Box<dyn ReactionPoint>,
    last: Option<Instant>,
}

impl Source {
    /// The next frame's last bit if it has left by `now`.
    fn send(&mut self, now: Instant) -> bool {
        while let Some(due) = self.point.poll_timeout().filter(|due| *due <= now) {
            self.point.handle_timeout(due);
        }
        let Permission::At(at) = self.point.may_send_at(self.last) else { return false };
        let end = at.max(self.last.unwrap_or(at)) + FRAME.time_at(LINE);
        if end > now {
            return false;
        }
        self.last = Some(end);
        self.point.on_transmit(FRAME, end);
        true
    }
}

fn settle(senders: usize, service: BitRate) -> Result<(f64, f64), Failure> {
    let mut output: Box<dyn CongestionPoint> = congestion_point(PARAMS)?;
    let mut sources = (0..senders)
        .map(|_| Ok(Source { point: reaction_point(PARAMS)?, last: None }))
        .collect::<Result<Vec<_>, Failure>>()?;
    let step = FRAME.time_at(service);
    let steps = 300_000_000_000 / step.as_ps();
    let (mut queue, mut area, mut idle, mut measured) = (0u64, 0u64, 0u64, 0u64);
    for n in 0..steps {
        let now = Instant::ZERO + step * n;
        for source in &mut sources {
            while source.send(now) {
                queue += 1;
                let sample = QueueSample {
                    ingress: PortNumber::from_index(1),
                    queue: Bytes::new(queue * FRAME.get()),
                    ingress_buffer: Bytes::ZERO,
                    line_rate: service,
                    blocked_since: None,
                    last_departure: None,
                };
                if let Marking::Notify(told) = output.on_enqueue(&frame(FRAME), &sample, now) {
                    source.point.on_notification(&told, now);
                }
            }
        }
        if n * 3 >= steps * 2 {
            measured += 1;
            area += queue;
            idle += u64::from(queue == 0);
        }
        queue = queue.saturating_sub(1);
    }
    let mean = area as f64 / measured as f64 * FRAME.get() as f64;
    Ok((mean / SET_POINT, idle as f64 / measured as f64))
}

/// QCN-11.
pub fn stability() -> Finding {
    let mut seen = Vec::new();
    for (senders, gbps) in [(1, 5), (4, 10), (8, 10)] {
        let (queue, idle) = settle(senders, BitRate::gbps(gbps))?;
        let who = format!("{senders} into {gbps} Gb/s");
        ensure((0.5..=1.5).contains(&queue), || format!("{who}: a queue of {queue:.2} cpQSp"))?;
        ensure(idle <= 0.05, || format!("{who}: {:.1} % of the line lost", idle * 100.0))?;
        seen.push(format!("{who}: {queue:.2} cpQSp, {:.2} % idle", idle * 100.0));
    }
    Ok(seen.join("; "))
}
