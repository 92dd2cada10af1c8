//! PFC-12 to PFC-14 and PFC-19: silence that is asked for again, words that get lost, and two ends
//! that do not ask for the same.

use super::{FOUR, blocked, send};
use crate::bench::Bench;
use crate::bench::devices::ethernet::{
    CONTROL_TIME, FRAME_TIME, HEADROOM_FRAMES, LOSSLESS, QUANTUM, SHARED_FRAMES, nic, pause_of,
    switch, with_pause,
};
use crate::bench::devices::{MTU, burst, class};
use crate::bench::packets::ethernet::{control_of, data};
use crate::bench::star;
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Device;
use proto::frame::Frame;
use proto::units::{BitRate, Duration, Instant};
use proto::wire::ethernet::MacControl;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use switchd::switch::Switch;

/// A pause time, in quanta: ten of them are soon over.
const TIME: u16 = 200;

fn pause_time(quanta: u16) -> NonZeroU16 {
    NonZeroU16::new(quanta).expect("cases ask for pauses that are some")
}

/// PFC-12: above XON for ten pause times; and a NIC that hears it.
pub fn refresh() -> Finding {
    let config = with_pause(switch(FOUR), |pause| pause.pause_time = pause_time(TIME));
    let mut bench = blocked(config, LOSSLESS)?;
    send(&mut bench, 1, LOSSLESS, SHARED_FRAMES);
    let begin = bench.now();
    bench.run_for(QUANTUM * (10 * u64::from(TIME)));
    let heard: Vec<_> = bench.asked(1, LOSSLESS).iter().map(|(at, _)| at.since(begin)).collect();
    let interval = QUANTUM * u64::from(TIME / 4);
    let expected = (0..=heard.len() as u64).map(|n| interval * n);
    ensure(heard.iter().copied().eq(expected.take(heard.len())) && heard.len() >= 40, || {
        format!("XOFF was heard at {heard:?}, expected every {interval}")
    })?;
    bench.pfc(FOUR, 1 << LOSSLESS, 0);
    bench.run_for(FRAME_TIME * SHARED_FRAMES);
    bench.forget();
    bench.run_for(QUANTUM * (10 * u64::from(TIME)));
    same("frames of PFC after XON", bench.control(1).count(), 0)?;
    let leaked = leaks(interval, heard.len() as u64)?;
    Ok(format!(
        "XOFF of {TIME} quanta {} times, a quarter of its time apart, silence after XON; a NIC that \
         hears it sends {leaked} frames in between",
        heard.len()
    ))
}

/// How many frames a NIC with a backlog sends that is silenced so often.
fn leaks(interval: Duration, times: u64) -> Result<usize, Failure> {
    let mut config = nic(1);
    config.classes = vec![class(Transport::Uc, LOSSLESS)];
    config.traffic = vec![burst(2, 0, MTU as u64, 0, Instant::ZERO)];
    let mut bench = Bench::ethernet(Nic::new(config).map_err(|error| error.to_string())?);
    bench.pfc(1, 1 << LOSSLESS, TIME);
    bench.run_for(interval);
    let before = bench.packets(1).count();
    for _ in 0..times {
        bench.pfc(1, 1 << LOSSLESS, TIME);
        bench.run_for(interval);
    }
    let leaked = bench.packets(1).count() - before;
    same("frames between refreshes", leaked, 0)?;
    Ok(leaked)
}

/// PFC-13: a NIC that never hears XON, by itself and in a fabric.
pub fn lost_xon() -> Finding {
    let mut config = nic(1);
    config.classes = vec![class(Transport::Uc, LOSSLESS)];
    let start = Instant::ZERO + Duration::from_us(9);
    config.traffic = vec![burst(2, 0, MTU as u64, 3, start)];
    let mut bench = Bench::ethernet(Nic::new(config).map_err(|error| error.to_string())?);
    bench.pfc(1, 1 << LOSSLESS, u16::MAX);
    let silence = QUANTUM * u64::from(u16::MAX);
    bench.run_for(silence + FRAME_TIME * 3);
    let first = super::starts(&bench, 1, LOSSLESS).first().map(|at| at.since(Instant::ZERO));
    ensure(first == Some(silence), || format!("it resumes after {first:?}, expected {silence}"))?;
    same("frames that leave then", bench.packets(1).count(), 3)?;
    let lost = without_xon()?;
    Ok(format!(
        "resumes alone after 65 535 quanta to the picosecond; a fabric that loses all {lost} XONs \
         delivers everything"
    ))
}

/// Messages of the fabric that loses words.
const MESSAGES: u64 = 500;

/// A sender twice as fast as its receiver's line, deaf to XON; how many it missed.
fn without_xon() -> Result<u64, Failure> {
    let fast = BitRate::gbps(16);
    let lost = Arc::new(AtomicU64::new(0));
    let mut sender = nic(1);
    sender.link.rate = fast;
    sender.classes = vec![class(Transport::Uc, LOSSLESS)];
    sender.traffic = vec![burst(2, 0, MTU as u64, MESSAGES, Instant::ZERO)];
    let mut relay = with_pause(switch(2), |pause| pause.pause_time = pause_time(TIME));
    relay.ports[0].link.rate = fast;
    let counter = Arc::clone(&lost);
    let is_xon = move |_, frame: &Frame| {
        let xon = matches!(control_of(frame), Some(MacControl::Pfc(pfc)) if pfc.times == [0; 8]);
        counter.fetch_add(u64::from(xon), Ordering::Relaxed);
        xon
    };
    let mut receiver = nic(2);
    receiver.classes = sender.classes.clone();
    let refused = |error: nicd::config::check::ConfigError| error.to_string();
    let devices: Vec<Box<dyn Device>> = vec![
        star::deaf(Nic::new(sender).map_err(refused)?, Box::new(is_xon)),
        Box::new(Nic::new(receiver).map_err(refused)?),
        Box::new(Switch::new(relay).map_err(|error| error.to_string())?),
    ];
    let mut fabric = star::star(devices, Duration::from_ns(100));
    // Each silence lasts a little longer than it should.
    let readings = star::run(&mut fabric, Instant::ZERO + FRAME_TIME * (10 * MESSAGES));
    let delivered = readings[1].receptions.iter().map(|flow| flow.messages).sum::<u64>();
    same("messages delivered", delivered, MESSAGES)?;
    let drops: u64 = readings.iter().flat_map(|r| &r.ports).map(|port| port.drops.total()).sum();
    same("frames dropped", drops, 0)?;
    let lost = lost.load(Ordering::Relaxed);
    ensure(lost > 0, || "no XON was lost: the case says nothing".to_owned())?;
    Ok(lost)
}

/// PFC-14: the first XOFF is not heard, the second is.
pub fn lost_xoff() -> Finding {
    let mut words = Vec::new();
    for time in [160, 600, 1_000] {
        let config = with_pause(switch(FOUR), |pause| pause.pause_time = pause_time(time));
        let mut bench = blocked(config, LOSSLESS)?;
        let before = bench.reading();
        let mut sent = 0;
        while bench.asked(1, LOSSLESS).len() < 2 {
            bench.stream(1, bench.now(), super::RATE, [data(1, 4, LOSSLESS, sent)]);
            bench.run_for(FRAME_TIME);
            sent += 1;
        }
        let repeated = FRAME_TIME * SHARED_FRAMES + QUANTUM * u64::from(time / 4);
        let heard = repeated + CONTROL_TIME;
        let on_line = heard.as_ps().div_ceil(FRAME_TIME.as_ps());
        same("frames sent until the repetition is heard", u64::from(sent), on_line)?;
        let lost = on_line.saturating_sub(SHARED_FRAMES + HEADROOM_FRAMES);
        let expected =
            if lost == 0 { "nothing".to_owned() } else { format!("headroom_overrun {lost}") };
        same("what the input loses", bench.lost_since(&before, 1), expected)?;
        words.push(format!("{lost} lost with {time} quanta"));
    }
    Ok(format!("{}, as many as came in beyond the headroom until the repetition", words.join(", ")))
}

/// PFC-19: everything is obeyed, silence asked only of what is lossless.
pub fn asymmetric() -> Finding {
    let config = with_pause(switch(FOUR), |pause| pause.obeyed = 0xff);
    let mut bench = Bench::ethernet(Switch::new(config).map_err(|error| error.to_string())?);
    let before = bench.reading();
    bench.pfc(FOUR, 0xff, u16::MAX);
    for priority in 0..8 {
        send(&mut bench, 1, priority, SHARED_FRAMES + 1);
        let spoken_of: Vec<_> = (0..8).filter(|p| !bench.asked(1, *p).is_empty()).collect();
        let expected: &[u8] = if priority < LOSSLESS { &[] } else { &[LOSSLESS] };
        ensure(spoken_of == expected, || format!("silence is asked of {spoken_of:?}"))?;
    }
    same("frames out while all is paused", bench.packets(FOUR).count(), 0)?;
    // A lossy priority loses what it may not share.
    same("what the input loses", bench.lost_since(&before, 1), "buffer_full 7".to_owned())?;
    bench.pfc(FOUR, 0xff, 0);
    bench.run_for(FRAME_TIME * 100);
    same("frames out afterwards", bench.packets(FOUR).count() as u64, 8 * SHARED_FRAMES + 1)?;
    let mut link = nic(1).link;
    same("priorities obeyed otherwise", pause_of(&mut link).obeyed, 1 << LOSSLESS)?;
    Ok("pauses of all eight priorities are obeyed; PFC is sent for priority 3 alone".to_owned())
}
