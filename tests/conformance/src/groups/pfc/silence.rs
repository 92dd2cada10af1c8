//! PFC-04, PFC-05, PFC-09 to PFC-11: who is silent, for how long, and what still goes.

use super::{FOUR, blocked, send, starts};
use crate::bench::Bench;
use crate::bench::devices::ethernet::{
    FRAME, FRAME_TIME, HEADROOM_FRAMES, LOSSLESS, QUANTUM, SHARED_FRAMES, nic, switch, with_pause,
};
use crate::bench::devices::{MTU, RATE, burst, class};
use crate::bench::line::{line, never_idle};
use crate::bench::packets::ethernet::{control, data};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Device;
use proto::ids::Priority;
use proto::link::pause::quanta;
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::ethernet::{MacControl, Pfc};
use switchd::switch::Switch;

/// Five seconds of the live profile, in pairs of frame times.
const PAIRS: u64 = 1_500;
/// The priority that is not paused.
const OTHER: u8 = 1;

/// PFC-04.
pub fn paused_is_silent() -> Finding {
    let (accepted, others) = through_a_switch()?;
    let from_nic = out_of_a_nic()?;
    Ok(format!(
        "0 frames of priority 3; all {others} of the other through a switch that takes {accepted} \
         frames of the first, and {from_nic} back to back from a NIC; then all of the first"
    ))
}

/// Half a line of each priority, for as long as the case asks, the one paused.
fn through_a_switch() -> Result<(u64, u64), Failure> {
    let mut bench = blocked(switch(FOUR), LOSSLESS)?;
    let before = bench.reading();
    let mut offered = 0;
    for pair in 0..PAIRS {
        // A pause lasts for 1988 frame times.
        if pair % 500 == 0 {
            bench.pfc(FOUR, 1 << LOSSLESS, u16::MAX);
        }
        if bench.asked(1, LOSSLESS).is_empty() {
            bench.send(1, data(1, 4, LOSSLESS, offered));
            offered += 1;
        }
        bench.send(2, data(2, 4, OTHER, pair as u32));
        bench.run_for(FRAME_TIME * 2);
    }
    let others = bench.data(FOUR, OTHER).count() as u64;
    same("frames of the paused priority", bench.data(FOUR, LOSSLESS).count(), 0)?;
    same("frames of the other priority", others, PAIRS)?;
    let accepted = bench.held(1, LOSSLESS);
    ensure(accepted <= (SHARED_FRAMES + HEADROOM_FRAMES) * FRAME, || {
        format!("{accepted} octets were accepted, more than threshold and headroom")
    })?;
    bench.pfc(FOUR, 1 << LOSSLESS, 0);
    bench.run_for(FRAME_TIME * SHARED_FRAMES);
    same("quanta said last", bench.asked(1, LOSSLESS).last().map_or(1, |(_, time)| *time), 0)?;
    for psn in u64::from(offered)..PAIRS {
        bench.send(1, data(1, 4, LOSSLESS, psn as u32));
        bench.run_for(FRAME_TIME * 2);
    }
    same("frames once it may go on", bench.data(FOUR, LOSSLESS).count() as u64, PAIRS)?;
    bench.nothing_lost(&before)?;
    Ok((accepted / FRAME, others))
}

/// A NIC with a hundred messages for the paused priority and endless ones for another.
fn out_of_a_nic() -> Result<usize, Failure> {
    let mut config = nic(1);
    config.classes = vec![class(Transport::Uc, LOSSLESS), class(Transport::Uc, OTHER)];
    let start = Instant::ZERO + Duration::from_us(1);
    let size = MTU as u64;
    config.traffic = vec![burst(2, 0, size, 100, start), burst(2, 1, size, 0, start)];
    let mut bench = Bench::ethernet(Nic::new(config).map_err(|error| error.to_string())?);
    bench.pfc(1, 1 << LOSSLESS, u16::MAX);
    bench.run_until(start + FRAME_TIME * 1_000);
    never_idle(&line(bench.line(1), RATE))?;
    let (silent, others) = (bench.data(1, LOSSLESS).count(), bench.data(1, OTHER).count());
    same("frames of the paused priority from a NIC", silent, 0)?;
    same("frames of the other priority from a NIC", others, 1_000)?;
    bench.pfc(1, 1 << LOSSLESS, 0);
    bench.run_for(FRAME_TIME * 300);
    same("frames of a NIC once it may go on", bench.data(1, LOSSLESS).count(), 100)?;
    Ok(others)
}

/// PFC-05: eight times in one frame, and eight demands.
pub fn independent_priorities() -> Finding {
    let all = with_pause(switch(FOUR), |pause| {
        pause.lossless = 0xff;
        pause.obeyed = 0xff;
    });
    let mut bench = Bench::ethernet(Switch::new(all.clone()).map_err(|error| error.to_string())?);
    let time = |priority: u8| 400 + 50 * u16::from(priority);
    for paused in [[3, 4].as_slice(), &[0, 1, 2, 3, 4, 5, 6, 7]] {
        bench.forget();
        let said = paused.iter().fold(Pfc::default(), |pfc, priority| {
            pfc.with(Priority::truncate(*priority), time(*priority))
        });
        let begin = bench.now();
        bench.inject(FOUR, control(MacControl::Pfc(said)));
        for priority in 0..8 {
            send(&mut bench, 1, priority, 1);
        }
        bench.run_for(QUANTUM * 1_000);
        for priority in 0..8 {
            let first = starts(&bench, FOUR, priority).first().copied();
            let first = first.ok_or_else(|| format!("priority {priority} sent nothing"))?;
            let ends = begin + QUANTUM * u64::from(time(priority));
            let holds = if paused.contains(&priority) { first == ends } else { first < ends };
            ensure(holds, || {
                format!(
                    "with {paused:?} paused priority {priority} starts at {first}, pause to {ends}"
                )
            })?;
        }
    }
    let mut bench = Bench::ethernet(Switch::new(all).map_err(|error| error.to_string())?);
    bench.pfc(FOUR, 0xff, u16::MAX);
    for priority in 0..8 {
        send(&mut bench, 1, priority, SHARED_FRAMES);
        let spoken_of: Vec<_> = (0..8).filter(|p| !bench.asked(1, *p).is_empty()).collect();
        let expected: Vec<_> = (0..=priority).collect();
        ensure(spoken_of == expected, || format!("silence is asked of {spoken_of:?} so far"))?;
    }
    same("frames of PFC for eight priorities", bench.control(1).count(), 8)?;
    Ok("two and eight priorities end their pauses each at its own instant; eight ask for silence each \
        by itself"
        .to_owned())
}

/// PFC-09: by the rate of the line, on a switch and a NIC.
pub fn quanta_length() -> Finding {
    const RATES: [BitRate; 3] =
        [RATE, BitRate::gbps(10), BitRate::new(100_000_000).expect("it is not zero")];
    for rate in RATES {
        let mut switch = switch(4);
        switch.ports.iter_mut().for_each(|port| port.link.rate = rate);
        let mut nic = nic(1);
        nic.link.rate = rate;
        nic.classes = vec![class(Transport::Uc, LOSSLESS)];
        for time in [1, 100, 10_000, u16::MAX] {
            let start = Instant::ZERO + Duration::from_us(50);
            let made = Switch::new(switch.clone()).map_err(|error| error.to_string())?;
            silent_for(Bench::ethernet(made), FOUR, rate, time, |bench| {
                bench.run_until(start);
                bench.send(1, data(1, 4, LOSSLESS, 0));
            })?;
            let mut nic = nic.clone();
            nic.traffic = vec![burst(2, 0, MTU as u64, 1, start)];
            let made = Nic::new(nic).map_err(|error| error.to_string())?;
            // It is told of the message and of the pause at the same instant.
            silent_for(Bench::ethernet(made), 1, rate, time, |bench| {
                bench.run_until(Instant::from_ps(start.as_ps() - 1));
            })?;
        }
    }
    Ok("1, 100, 10 000 and 65 535 quanta are 512 bit times each to the picosecond, on 8 Gb/s, 10 Gb/s \
        and 100 Mb/s, in switch and NIC"
        .to_owned())
}

/// A frame that is ready while `port` is paused starts when `time` quanta are over.
fn silent_for<D: Device>(
    mut bench: Bench<D>,
    port: u8,
    rate: BitRate,
    time: u16,
    ready: impl Fn(&mut Bench<D>),
) -> Result<(), Failure> {
    let begin = Instant::from_ps((Instant::ZERO + Duration::from_us(50)).as_ps() - 1);
    bench.run_until(begin);
    bench.pfc(port, 1 << LOSSLESS, time);
    ready(&mut bench);
    bench.run_for(quanta(time, rate) + Bytes::new(2 * FRAME).time_at(rate));
    let sent = line(bench.packets(port), rate);
    let start = sent.first().map(|frame| frame.start);
    let start = start.ok_or_else(|| format!("nothing leaves after {time} quanta"))?;
    let exact = u128::from(time) * 512 * 1_000_000_000_000 / u128::from(rate.get());
    same(
        format!("picoseconds of {time} quanta at {} bit/s", rate.get()),
        u128::from(start.since(begin).as_ps()),
        exact,
    )
}

/// PFC-10.
pub fn xon_releases() -> Finding {
    for response in [Duration::ZERO, Duration::from_ns(614)] {
        let config = with_pause(switch(FOUR), |pause| pause.response = response);
        let mut bench = blocked(config, LOSSLESS)?;
        // A slow ear obeys only now.
        bench.run_for(response);
        send(&mut bench, 1, LOSSLESS, 3);
        bench.run_for(Duration::from_us(1_000));
        same("frames while paused", bench.data(FOUR, LOSSLESS).count(), 0)?;
        let xon = bench.now();
        bench.pfc(FOUR, 1 << LOSSLESS, 0);
        bench.run_for(FRAME_TIME * 3);
        let starts = starts(&bench, FOUR, LOSSLESS);
        let expected: Vec<_> = (0..3).map(|n| xon + FRAME_TIME * n).collect();
        ensure(starts == expected, || format!("XON at {xon}, frames start at {starts:?}"))?;
    }
    Ok("the first frame starts at the instant of XON".to_owned())
}

/// PFC-11.
pub fn frame_in_flight() -> Finding {
    let half = Duration::from_ps(FRAME_TIME.as_ps() / 2);
    for (response, whole) in [(Duration::ZERO, 1), (half, 1), (FRAME_TIME + half, 2)] {
        let config = with_pause(switch(FOUR), |pause| pause.response = response);
        let made = Switch::new(config).map_err(|error| error.to_string())?;
        let mut bench = Bench::ethernet(made);
        for psn in 0..4 {
            bench.send(1, data(1, 4, LOSSLESS, psn));
        }
        bench.run_for(half);
        let obeyed = bench.now() + response;
        bench.pfc(FOUR, 1 << LOSSLESS, u16::MAX);
        bench.run_for(FRAME_TIME * 10);
        let starts = starts(&bench, FOUR, LOSSLESS);
        ensure(starts.len() == whole && starts.iter().all(|start| *start < obeyed), || {
            format!("obeyed from {obeyed} on, frames start at {starts:?}, expected {whole}")
        })?;
    }
    Ok("the frame under way goes whole; none starts at or after the end of the response time"
        .to_owned())
}
