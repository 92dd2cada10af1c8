//! PFCWD-01 to PFCWD-03 and PFCWD-05 to PFCWD-08: pauses without end, and what is done about them.

use crate::bench::Bench;
use crate::bench::devices::ethernet::{
    FRAME, FRAME_TIME, HEADROOM_FRAMES, LOSSLESS, SHARED_FRAMES, pause_of, switch,
};
use crate::bench::packets::ethernet::data;
use crate::bench::star;
use crate::case::{Failure, Finding, ensure, same};
use proto::device::Device;
use proto::events::EventKind;
use proto::link::outage::Outage;
use proto::units::{Duration, Instant};
use switchd::config::{StormAction, SwitchConfig, WatchdogConfig};
use switchd::switch::Switch;

/// The port whose neighbour pauses for ever.
const STORM: u8 = 4;
/// How often the watchdog looks.
const POLL: Duration = Duration::from_us(500);
/// How long a queue must stand, and how long it must be quiet: four polls.
const DETECTION: Duration = Duration::from_us(2_000);

fn guarded(action: StormAction) -> SwitchConfig {
    let (detection, restoration) = (DETECTION, DETECTION);
    let watchdog = WatchdogConfig { detection, restoration, poll: POLL, action };
    SwitchConfig { watchdog: Some(watchdog), ..switch(STORM) }
}

fn bench(action: StormAction) -> Result<Bench<Switch>, Failure> {
    let made = Switch::new(guarded(action)).map_err(|error| error.to_string())?;
    Ok(Bench::ethernet(made))
}

/// The neighbour at port 4 pauses priority 3 for so many polls without a gap.
fn storm<D: Device>(bench: &mut Bench<D>, polls: u64) {
    for _ in 0..polls {
        bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
        bench.run_for(POLL);
    }
}

/// The storm ends, and time passes.
fn calm<D: Device>(bench: &mut Bench<D>, length: Duration) {
    bench.pfc(STORM, 1 << LOSSLESS, 0);
    bench.run_for(length);
}

/// When storms were told of, and when their ends.
fn told<D: Device>(bench: &Bench<D>) -> (Vec<Instant>, Vec<Instant>) {
    let at = |is: fn(&EventKind) -> bool| bench.told(is).iter().map(|told| told.0).collect();
    let begun = at(|kind| matches!(kind, EventKind::Storm { .. }));
    (begun, at(|kind| matches!(kind, EventKind::StormOver { .. })))
}

fn feed(bench: &mut Bench<Switch>, from: u8, to: u8, priority: u8, count: u32) {
    for psn in 0..count {
        bench.send(from, data(from.into(), to.into(), priority, psn));
        bench.run_for(FRAME_TIME);
    }
}

/// PFCWD-01.
pub fn short() -> Finding {
    for action in [StormAction::Drop, StormAction::Forward, StormAction::Alert] {
        let mut bench = bench(action)?;
        let before = bench.reading();
        bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
        feed(&mut bench, 1, STORM, LOSSLESS, SHARED_FRAMES as u32);
        // Three polls see it stand still for all of their interval, one less than it takes.
        storm(&mut bench, 3);
        let out = bench.data(STORM, LOSSLESS).count();
        same("frames that leave during the storm", out, 0)?;
        calm(&mut bench, Duration::from_us(10_000));
        ensure(told(&bench).0.is_empty(), || format!("a storm was found with {action:?}"))?;
        same(
            "frames that leave after it",
            bench.data(STORM, LOSSLESS).count() as u64,
            SHARED_FRAMES,
        )?;
        bench.nothing_lost(&before)?;
    }
    Ok("nothing found, nothing lost, all of it later; with each of 3 actions".to_owned())
}

/// PFCWD-02: the queue is emptied, and what comes for it is dropped; everything else goes on.
pub fn dropping() -> Finding {
    let mut bench = bench(StormAction::Drop)?;
    let before = bench.reading();
    // Between two polls: in the first interval the queue is not paused all the time.
    bench.run_for(Duration::from_us(100));
    let begin = bench.now();
    bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    feed(&mut bench, 1, STORM, LOSSLESS, (SHARED_FRAMES + HEADROOM_FRAMES) as u32);
    storm(&mut bench, 6);
    let (found, over) = told(&bench);
    let waited = found.first().map_or(Duration::ZERO, |at| at.since(begin));
    ensure(found.len() == 1 && over.is_empty(), || format!("storms were found at {found:?}"))?;
    ensure(DETECTION < waited && waited <= DETECTION + POLL, || {
        format!("it was found after {waited}, expected {DETECTION} and up to a poll")
    })?;
    let flushed = SHARED_FRAMES + HEADROOM_FRAMES;
    same("losses of port 4", bench.lost_since(&before, STORM), format!("wd_drop {flushed}"))?;
    same("octets held", bench.held(1, LOSSLESS), 0)?;
    let last = bench.asked(1, LOSSLESS).last().map_or(1, |(_, quanta)| *quanta);
    same("quanta the sender was asked for last", last, 0)?;
    bench.forget();
    bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    feed(&mut bench, 1, STORM, LOSSLESS, 100);
    feed(&mut bench, 2, STORM, 1, 50);
    feed(&mut bench, 2, 3, LOSSLESS, 50);
    let dropped = flushed + 100;
    same("losses of port 4", bench.lost_since(&before, STORM), format!("wd_drop {dropped}"))?;
    same("frames of PFC upstream", bench.control(1).count(), 0)?;
    bench.run_for(FRAME_TIME);
    same("frames of another priority", bench.data(STORM, 1).count(), 50)?;
    same("frames of the same one to another port", bench.data(3, LOSSLESS).count(), 50)?;
    let counted = bench.named(STORM, "queue3_deadlock_dropped_packets");
    same("queue3_deadlock_dropped_packets", counted, dropped)?;
    for port in 1..STORM {
        let lost = bench.lost_since(&before, port);
        same(format!("losses of port {port}"), lost, "nothing".to_owned())?;
    }
    Ok(format!(
        "found after {waited}; {flushed} frames flushed, 100 later ones dropped, counted as wd_drop; no \
         PFC upstream; another priority and another port untouched"
    ))
}

/// PFCWD-03: the queue is deaf while the storm lasts.
pub fn forwarding() -> Finding {
    let mut bench = bench(StormAction::Forward)?;
    let before = bench.reading();
    bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    feed(&mut bench, 1, STORM, LOSSLESS, SHARED_FRAMES as u32);
    storm(&mut bench, 6);
    let (found, _) = told(&bench);
    same("storms found", found.len(), 1)?;
    let out = bench.data(STORM, LOSSLESS).count() as u64;
    same("frames that leave in the storm", out, SHARED_FRAMES)?;
    bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    feed(&mut bench, 1, STORM, LOSSLESS, 100);
    bench.run_for(FRAME_TIME);
    let out = bench.data(STORM, LOSSLESS).count() as u64;
    same("frames that go on leaving", out, SHARED_FRAMES + 100)?;
    bench.nothing_lost(&before)?;
    calm(&mut bench, DETECTION + POLL * 2);
    same("ends of storms", told(&bench).1.len(), 1)?;
    bench.forget();
    bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    feed(&mut bench, 1, STORM, LOSSLESS, 1);
    bench.run_for(POLL);
    same("frames that leave a paused queue afterwards", bench.packets(STORM).count(), 0)?;
    Ok("the queue ignores pauses while the storm lasts, 0 dropped, and obeys after it".to_owned())
}

/// PFCWD-05: nothing waits; and something leaves now and then.
pub fn needs_a_backlog() -> Finding {
    let mut empty = bench(StormAction::Drop)?;
    storm(&mut empty, 20);
    ensure(told(&empty).0.is_empty(), || "a storm of an empty queue was found".to_owned())?;
    let mut draining = bench(StormAction::Drop)?;
    let before = draining.reading();
    draining.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    feed(&mut draining, 1, STORM, LOSSLESS, SHARED_FRAMES as u32);
    for left in (0..SHARED_FRAMES).rev() {
        // Paused for all of three polls, but then a frame gets out.
        storm(&mut draining, 3);
        calm(&mut draining, Duration::ZERO);
        draining.pfc(STORM, 1 << LOSSLESS, u16::MAX);
        draining.run_for(FRAME_TIME);
        same("octets held", draining.held(1, LOSSLESS), left * FRAME)?;
    }
    ensure(told(&draining).0.is_empty(), || "a storm of a draining queue was found".to_owned())?;
    draining.nothing_lost(&before)?;
    Ok("no storm of an empty queue in 20 polls, none of one that sends a frame in three".to_owned())
}

/// PFCWD-06: a watchdog that gets to look only every third time.
pub fn elapsed_time() -> Finding {
    let slow = POLL * 3;
    let made = Switch::new(guarded(StormAction::Drop)).map_err(|error| error.to_string())?;
    let mut bench = Bench::ethernet(star::sleepy(made, slow));
    bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
    bench.send(1, data(1, STORM.into(), LOSSLESS, 0));
    storm(&mut bench, 12);
    let (found, _) = told(&bench);
    let expected = Instant::ZERO + slow * 2;
    ensure(found == [expected], || {
        format!(
            "storms found at {found:?}, expected one at {expected}: {DETECTION} of standing still"
        )
    })?;
    let quiet = bench.now();
    calm(&mut bench, slow * 12);
    let (_, over) = told(&bench);
    let waited = over.first().map_or(Duration::ZERO, |at| at.since(quiet));
    ensure(over.len() == 1 && waited == slow * 2, || {
        format!("restored after {waited}, expected {}: two late polls, not four", slow * 2)
    })?;
    Ok(format!("polls {slow} apart: found after {}, restored after {waited}", slow * 2))
}

/// PFCWD-07: a storm, its end, and traffic of all priorities between all ports.
pub fn clean_afterwards() -> Finding {
    for action in [StormAction::Drop, StormAction::Forward, StormAction::Alert] {
        let mut bench = bench(action)?;
        bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
        feed(&mut bench, 1, STORM, LOSSLESS, SHARED_FRAMES as u32);
        storm(&mut bench, 8);
        calm(&mut bench, DETECTION + POLL * 2);
        let (found, over) = told(&bench);
        same(format!("storms found and over with {action:?}"), found.len() + over.len(), 2)?;
        bench.forget();
        let before = bench.reading();
        let pairs = (1..=STORM).flat_map(|from| (1..=STORM).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            for priority in 0..8 {
                feed(&mut bench, from, to, priority, 3);
            }
        }
        bench.run_for(FRAME_TIME * 2);
        for to in 1..=STORM {
            for priority in 0..8 {
                let came = bench.data(to, priority).count();
                same(format!("frames of priority {priority} out of port {to}"), came, 9)?;
            }
        }
        bench.nothing_lost(&before)?;
    }
    Ok("every frame of 8 priorities between 4 ports; after each of 3 actions".to_owned())
}

/// PFCWD-08: what is paused when the link goes down; ten times as long as a storm takes, and so short
/// that the pause would still hold.
pub fn link_down() -> Finding {
    let at = |us| Instant::ZERO + Duration::from_us(us);
    for outage in
        [Outage { from: at(1_000), to: at(21_000) }, Outage { from: at(1_000), to: at(3_000) }]
    {
        let mut config = guarded(StormAction::Drop);
        let port = &mut config.ports[usize::from(STORM) - 1];
        pause_of(&mut port.link).outages = vec![outage];
        let made = Switch::new(config).map_err(|error| error.to_string())?;
        let mut bench = Bench::ethernet(made);
        let before = bench.reading();
        // It holds for 4.2 ms.
        bench.pfc(STORM, 1 << LOSSLESS, u16::MAX);
        feed(&mut bench, 1, STORM, LOSSLESS, SHARED_FRAMES as u32);
        bench.run_until(at(2_000));
        bench.send(STORM, data(STORM.into(), 1, LOSSLESS, 0));
        bench.run_until(outage.to);
        same("frames that leave while it is down", bench.line(STORM).count(), 0)?;
        bench.run_for(FRAME_TIME * SHARED_FRAMES);
        let left: Vec<Instant> = bench.data(STORM, LOSSLESS).map(|sent| sent.at).collect();
        let expected = (1..=SHARED_FRAMES).map(|n| outage.to + FRAME_TIME * n);
        ensure(left.iter().copied().eq(expected), || {
            format!("frames leave at {left:?}, the link is up at {}", outage.to)
        })?;
        bench.run_for(DETECTION * 3);
        ensure(told(&bench).0.is_empty(), || "a storm was found".to_owned())?;
        same("losses of the port", bench.lost_since(&before, STORM), "link_state 1".to_owned())?;
        same("losses of the sender", bench.lost_since(&before, 1), "nothing".to_owned())?;
    }
    Ok("down for 20 ms and for 2 ms in a pause of 4.2 ms: no storm, what waits is kept, what comes is lost \
        as link_state; all of it leaves from the instant at which the link is up"
        .to_owned())
}
