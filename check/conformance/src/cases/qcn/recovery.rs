//! QCN-09, QCN-10: how a reaction point is slowed and recovers, beside a second writing-down of the rules
//! in numbers with a point.

use super::{FRAME, LINE, reaction_point};
use crate::prelude::*;
use proto::congestion::{CnmBody, Effect, Notification, ReactionPoint};
use proto::ids::CongestionPointId;

/// Rates are whole bit/s at each step: a trace may differ from one that never rounds by so much.
const ROUNDING: f64 = 2.0;
const MEGA: f64 = 1e6;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n * 1_000)
}

fn notify(point: &mut dyn ReactionPoint, feedback: u8, at: Instant) -> Result<()> {
    let cpid = CongestionPointId::new(1).ok_or("1 is not zero")?;
    let body = CnmBody { quantized_feedback: feedback, cpid, q_offset: 0, q_delta: 0 };
    let effect = point.on_notification(&Notification::Cnm(body), at);
    ensure!(effect == Effect::Valid, "QntzFb {feedback} was {effect:?}");
    Ok(())
}

fn rate(point: &dyn ReactionPoint) -> f64 {
    point.state().rate.get() as f64
}

/// The rules with their defaults, as 802.1Q words them.
struct Reference {
    target: f64,
    current: f64,
    byte_stage: u32,
    time_stage: u32,
    halved: bool,
}

impl Reference {
    fn new() -> Reference {
        let line = LINE.get() as f64;
        Reference { target: line, current: line, byte_stage: 0, time_stage: 0, halved: false }
    }

    fn cut(&mut self, feedback: u8) {
        if self.byte_stage != 0 {
            self.target = self.current;
        }
        (self.byte_stage, self.time_stage, self.halved) = (0, 0, false);
        let kept = (1.0 - f64::from(feedback) / 128.0).max(0.5);
        self.current = (self.current * kept).max(5.0 * MEGA);
    }

    fn expire(&mut self) {
        let (least, most) =
            (self.byte_stage.min(self.time_stage), self.byte_stage.max(self.time_stage));
        self.halved = least >= 5;
        let increase = match (least, most) {
            (_, ..5) => 0.0,
            (..5, _) => 5.0 * MEGA,
            (stages, _) => 50.0 * MEGA * f64::from(stages - 4),
        };
        if (self.byte_stage == 1 || self.time_stage == 1) && self.target > 10.0 * self.current {
            self.target /= 8.0;
        } else {
            self.target = (self.target + increase).min(LINE.get() as f64);
        }
        self.current = (self.current + self.target) / 2.0;
    }
}

fn agree(point: &dyn ReactionPoint, reference: &Reference, when: &str) -> Result<()> {
    let (found, expected) = (rate(point), reference.current);
    ensure!((found - expected).abs() <= ROUNDING, "{when}: {found}, expected {expected:.1}");
    Ok(())
}

/// QCN-09.
pub fn decrease(_: Level) -> Finding {
    for feedback in 1..=63 {
        let (mut point, mut reference) = (reaction_point("")?, Reference::new());
        for n in 0..40 {
            notify(&mut *point, feedback, ms(0))?;
            reference.cut(feedback);
            if n % 7 == 6 {
                // A byte cycle, after which the target follows; before it, it does not.
                point.on_transmit(Bytes::new(150_000), ms(0));
                reference.byte_stage += 1;
                reference.expire();
            }
            // Each cut rounds once more.
            let (found, expected) = (rate(&*point), reference.current);
            let close = (found - expected).abs() <= ROUNDING + f64::from(n);
            ensure!(close, "QntzFb {feedback}, cut {n}: {found}, expected {expected:.1}");
        }
    }
    let mut point = reaction_point("")?;
    let cpid = CongestionPointId::new(1).ok_or("1 is not zero")?;
    let nothing = CnmBody { quantized_feedback: 0, cpid, q_offset: 0, q_delta: 0 };
    let effect = point.on_notification(&Notification::Cnm(nothing), ms(0));
    ensure!(effect == Effect::Refused && point.is_released(), "QntzFb 0 was {effect:?}");
    Ok("63 feedbacks, 40 cuts each, down to rpgMinRate; 0 refused".into())
}

/// QCN-10.
pub fn recovery(_: Level) -> Finding {
    let (mut point, mut reference) = (reaction_point("")?, Reference::new());
    // Deep down, with a target that has followed.
    for _ in 0..5 {
        notify(&mut *point, 63, ms(0))?;
        reference.cut(63);
        point.on_transmit(Bytes::new(150_000), ms(0));
        reference.byte_stage += 1;
        reference.expire();
    }
    notify(&mut *point, 63, ms(0))?;
    reference.cut(63);
    let (mut octets, mut due) = (150_000i64, ms(15));
    let (mut now, mut expiries) = (ms(0), 0);
    while !point.is_released() {
        ensure!(now < ms(2_000), "not released after 2 s: {} bit/s", rate(&*point));
        now = now + FRAME.time_at(point.state().rate);
        while due <= now {
            point.handle_timeout(due);
            reference.time_stage += 1;
            reference.expire();
            due = due + Duration::from_us(if reference.halved { 7_500 } else { 15_000 });
            expiries += 1;
        }
        point.on_transmit(FRAME, now);
        octets -= FRAME.get() as i64;
        if octets <= 0 {
            reference.byte_stage += 1;
            reference.expire();
            octets = if reference.halved { 75_000 } else { 150_000 };
            expiries += 1;
        }
        agree(&*point, &reference, &format!("expiry {expiries}"))?;
    }
    ensure!(point.poll_timeout().is_none(), "a released limiter has a timer");
    let (bytes, times) = (reference.byte_stage, reference.time_stage);
    ensure!(bytes > 5 && times > 5, "hyper increase was not reached");
    let stages = format!("{bytes} byte stages and {times} of the timer");
    Ok(format!("{stages}, exact, then released at {} ms", now.since(ms(0)).as_ps() / 1_000_000_000))
}
