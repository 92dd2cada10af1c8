//! PAUSE and PFC on one link, to the nanosecond. Names of cases are those of the conformance register.

use super::pair::*;
use super::*;
use crate::counters::Drops;
use crate::events::{Direction, HoldCause};
use crate::link::{PauseConfig, PauseMode};
use crate::units::Duration;
use crate::wire::ethernet::{MacAddress, MacControl, Pause, Pfc};
use proptest::prelude::*;
use std::num::NonZeroU16;

/// Nanoseconds of a quantum on this line.
const QUANTUM: u64 = 64;
/// From a demand to the peer's knowing of it: a frame of 64 octets, and the cable.
const TOLD: u64 = 64 + 100;

fn pair() -> Pair {
    Pair::new([pause_config(), pause_config()])
}

fn pfc(priorities: u8, time: u16) -> MacControl {
    MacControl::Pfc(Pfc { reserved: 0, enabled: priorities, times: [time; 8] })
}

/// A pair whose end 0 has so much to send of some priorities.
fn backlogged(priorities: u8, frames: u64) -> Pair {
    let mut pair = pair();
    pair.sources[0].left = std::array::from_fn(|n| u64::from(priorities >> n & 1) * frames);
    pair
}

#[test]
fn pfc_04_a_paused_priority_stops_and_the_others_have_the_line() {
    let mut pair = backlogged(0xff, 100);
    pair.demand(1, 1 << 3);
    pair.run_until(ns(TOLD + SIZE));
    let before = pair.sources[0].count(3, pair.now);
    pair.run_until(ns(600 * SIZE - 1));
    assert_eq!(pair.sources[0].count(3, pair.now), before);
    assert_eq!(pair.sources[0].sent.len(), 600, "and the line was never idle");
    pair.demand(1, 0);
    pair.run_until(ns(900 * SIZE));
    assert_eq!((0..8).map(|lane| pair.received(1, lane)).collect::<Vec<_>>(), [100; 8]);
}

#[test]
fn pfc_05_and_09_each_priority_has_a_timer_that_lasts_its_quanta_exactly() {
    let mut pair = backlogged(0xff, 10);
    let mut times = [1, 100, 10_000, 65_535, 2, 3, 500, 64];
    let pause = MacControl::Pfc(Pfc { reserved: 0, enabled: 0xff, times });
    pair.sources[0].ready = ns(10);
    pair.run_until(ns(5));
    assert_eq!(pair.hear(0, from_peer(&pause)), Arrival::Control);
    pair.run_until(ns(70_000 * QUANTUM));
    assert_eq!(pair.reading(0).lanes[0].counters.ctl_rx, 1, "the lowest priority that it enables");
    times.sort_unstable();
    for lane in 0..8 {
        let first = pair.sources[0].next(lane, Instant::ZERO).unwrap();
        let MacControl::Pfc(pfc) = pause else { unreachable!() };
        let over = ns(5 + u64::from(pfc.times[usize::from(lane)]) * QUANTUM);
        // Another priority's frame may be under way then.
        assert!(first >= over && first.since(over) < Duration::from_ns(60 * SIZE), "{lane}");
        let paused = pair.reading(0).lanes[usize::from(lane)].counters.pause_ps;
        assert_eq!(paused, over.since(ns(5)).as_ps());
    }
}

#[test]
fn pfc_09_a_pause_ends_by_itself_to_the_picosecond() {
    for time in [1, 100, 10_000, 65_535] {
        let mut pair = backlogged(1 << 3, 1);
        pair.hear(0, from_peer(&pfc(1 << 3, time)));
        pair.run_until(ns(66_000 * QUANTUM));
        assert_eq!(pair.sources[0].sent, [(ns(u64::from(time) * QUANTUM), 3)]);
    }
}

#[test]
fn while_its_peer_is_gone_a_port_sends_nothing_and_then_no_pause_is_left() {
    let mut pair = backlogged(1 << 3, 100);
    pair.run_until(ns(10 * SIZE));
    pair.hear(0, from_peer(&pfc(1 << 3, 0xffff)));
    let before = pair.sources[0].sent.len();
    pair.ports[0].set_link(false, pair.now, &mut pair.log);
    pair.run_until(ns(50 * SIZE));
    assert_eq!(pair.sources[0].sent.len(), before);
    assert_eq!(pair.hear(0, tagged(3, 100)), Arrival::Lost(DropReason::LinkState));
    let late = pair.hear(0, from_peer(&pfc(1 << 3, 0xffff)));
    assert_eq!(late, Arrival::Lost(DropReason::MacControlLinkState));
    pair.ports[0].set_link(true, pair.now, &mut pair.log);
    pair.hear(0, from_peer(&pfc(0, 0)));
    pair.run_until(ns(200 * SIZE));
    assert_eq!(pair.sources[0].sent.len(), 100);
}

/// A sender counts MAC control frames, which the EtherType behind the addresses tells, apart from all others. A drop that
/// counts one as the other leaves the conservation sum open.
#[test]
fn a_refused_frame_is_in_the_conservation_sum_if_its_sender_counted_it_there() {
    let control = from_peer(&pfc(1 << 3, 0xffff));
    let edit = |edit: &dyn Fn(&mut Frame)| {
        let mut frame = control.clone();
        edit(&mut frame);
        frame
    };
    let frames = [
        control.clone(),
        edit(&|frame| frame.octets.truncate(20)),
        edit(&|frame| frame.octets[15] = 0x77),
        edit(&|frame| frame.octets[..6].fill(0xff)),
        edit(&|frame| frame.integrity = Integrity::Aborted),
        tagged(3, 100),
        tagged(3, 1519),
    ];
    for is_up in [true, false] {
        let mut pair = pair();
        pair.ports[0].set_link(is_up, pair.now, &mut pair.log);
        for (case, frame) in frames.iter().enumerate() {
            let is_control = MacControl::is_announced(&frame.octets);
            if let Arrival::Lost(reason) = pair.hear(0, frame.clone()) {
                assert_eq!(reason.is_end_to_end(), !is_control, "{case}: {reason:?}");
            } else {
                assert!(is_up && [0, 5].contains(&case), "{case}");
            }
        }
    }
}

#[test]
fn pfc_06_a_priority_that_is_not_obeyed_is_counted_and_goes_on() {
    let config = PauseConfig { obeyed: 1 << 3, ..pause_config() };
    let mut pair = Pair::new([config, pause_config()]);
    pair.sources[0].left[1] = 50;
    for step in 0..50 {
        pair.hear(0, from_peer(&pfc(1 << 1, 0xffff)));
        pair.run_until(ns((step + 1) * SIZE));
    }
    assert_eq!(pair.sources[0].count(1, pair.now), 50);
    let reading = pair.reading(0);
    let names = ["rx_prio1_pause", "rx_prio1_pause_duration", "rx_prio1_pause_transition"];
    assert_eq!(names.map(|name| named(&reading, name)), [50, 0, 0]);
}

#[test]
fn pfc_07_with_pfc_a_pause_frame_is_counted_apart_without_effect() {
    let mut pair = backlogged(0xff, 10);
    for step in 0..80 {
        pair.hear(0, from_peer(&MacControl::Pause(Pause { time: 0xffff })));
        pair.run_until(ns((step + 1) * SIZE));
    }
    assert_eq!(pair.sources[0].sent.len(), 80);
    let reading = pair.reading(0);
    assert_eq!((named(&reading, "rx_global_pause"), named(&reading, "rx_pfc")), (80, 0));
    assert_eq!(reading.drops, Drops::default());
}

#[test]
fn pfc_08_a_vector_of_zero_says_nothing_and_is_no_error() {
    let mut pair = backlogged(0xff, 10);
    assert_eq!(pair.hear(0, from_peer(&pfc(0, 0xffff))), Arrival::Control);
    pair.run_until(ns(80 * SIZE));
    assert_eq!(pair.sources[0].sent.len(), 80);
    let reading = pair.reading(0);
    assert_eq!(reading.named, [("rx_pfc".to_owned(), 1)]);
    assert_eq!(reading.drops, Drops::default());
}

#[test]
fn pfc_10_xon_releases_at_once() {
    let mut pair = backlogged(1 << 3, 1);
    pair.hear(0, from_peer(&pfc(1 << 3, 0xffff)));
    pair.run_until(ns(777));
    pair.hear(0, from_peer(&pfc(1 << 3, 0)));
    assert_eq!(pair.sources[0].sent, [(ns(777), 3)]);
    let lane = pair.reading(0).lanes[3].counters;
    assert_eq!((lane.hold_ps, lane.pause_ps), (777_000, 777_000));
    let kinds: Vec<_> = std::iter::from_fn(|| pair.log.pop()).map(|event| event.kind).collect();
    let [xoff, hold, xon, free] = kinds[..] else { panic!("{kinds:?}") };
    let dir = Direction::Rx;
    let (cause, fill, priorities) = (HoldCause::Pfc, Bytes::ZERO, 1 << 3);
    assert_eq!(xoff, EventKind::Xoff { priorities, quanta: 0xffff, fill, dir });
    assert_eq!(hold, EventKind::Hold { cause });
    assert_eq!(xon, EventKind::Xon { priorities, fill, dir });
    assert_eq!(free, EventKind::Free { cause, waited: Duration::from_ns(777) });
}

#[test]
fn pfc_11_a_frame_under_way_finishes_and_one_within_the_response_time_still_starts() {
    for (response, frames) in [(0, 1), (1, 1), (SIZE, 2), (SIZE + 1, 2), (2 * SIZE, 3)] {
        let response = Duration::from_ns(response);
        let slow = PauseConfig { response, ..pause_config() };
        let mut pair = Pair::new([slow, pause_config()]);
        pair.sources[0].left[3] = 10;
        pair.run_until(ns(1));
        pair.hear(0, from_peer(&pfc(1 << 3, 1000)));
        pair.run_until(ns(1000 * QUANTUM));
        assert_eq!(pair.received(1, 3), frames, "{response}");
        pair.run_until(ns(1002 * QUANTUM + 3 * SIZE));
        let again = pair.sources[0].next(3, ns(1000 * QUANTUM));
        assert_eq!(again, Some(ns(1 + 1000 * QUANTUM) + response));
    }
}

#[test]
fn pfc_12_xoff_is_repeated_after_a_quarter_of_its_time_until_xon() {
    let short = PauseConfig { pause_time: NonZeroU16::new(400).unwrap(), ..pause_config() };
    let mut pair = Pair::new([pause_config(), short]);
    pair.sources[0].left[3] = 10;
    pair.demand(1, 1 << 3);
    let end = 10 * 400 * QUANTUM;
    pair.run_until(ns(end));
    let times: Vec<_> = pair.controls(0).iter().map(|(at, _)| *at).collect();
    let expected: Vec<_> = (0..40).map(|n| ns(TOLD + n * 100 * QUANTUM)).collect();
    assert_eq!(times, expected);
    assert_eq!(pair.sources[0].sent.len(), 1, "what was under way when the first arrived");
    pair.demand(1, 0);
    pair.run_until(ns(2 * end));
    assert_eq!(pair.controls(0).len(), 41 + 1, "the one at the end, and XON");
    assert_eq!(pair.received(1, 3), 10);
    let reading = pair.reading(1);
    let names = ["tx_prio3_pause", "tx_prio3_pause_duration", "tx_prio3_pause_transition"];
    // The repetition at the very end takes the line first.
    assert_eq!(names.map(|name| named(&reading, name)), [42, (end + 64) / 1000, 1]);
}

#[test]
fn pfc_13_a_lost_xon_costs_no_more_than_the_pause_itself() {
    let mut pair = backlogged(1 << 3, 1);
    pair.sources[0].ready = ns(TOLD);
    pair.demand(1, 1 << 3);
    pair.run_until(ns(1000));
    pair.lost[1] = 1;
    pair.demand(1, 0);
    pair.run_until(ns(66_000 * QUANTUM));
    assert_eq!(pair.sources[0].sent, [(ns(TOLD + 65_535 * QUANTUM), 3)]);
}

#[test]
fn pfc_14_the_repetition_makes_up_for_a_lost_xoff() {
    let mut pair = backlogged(1 << 3, 1000);
    pair.lost[1] = 1;
    pair.demand(1, 1 << 3);
    let quarter = 65_535 * QUANTUM / 4;
    pair.run_until(ns(quarter + 64 + 99));
    let before = pair.sources[0].sent.len();
    assert_eq!(before as u64, (quarter + 64 + 99) / SIZE + 1);
    pair.run_until(ns(4 * quarter));
    assert_eq!(pair.sources[0].sent.len(), before);
}

#[test]
fn pfc_15_what_still_arrives_is_what_delays_and_response_allow() {
    for response in (0..20_000).step_by(700) {
        let slow = PauseConfig { response: Duration::from_ns(response), ..pause_config() };
        let mut pair = Pair::new([slow, pause_config()]);
        pair.sources[0].left[3] = 100;
        let asked = 10 * SIZE;
        pair.run_until(ns(asked));
        let before = pair.received(1, 3);
        pair.demand(1, 1 << 3);
        pair.run_until(ns(200 * SIZE));
        let after = ((pair.received(1, 3) - before) as u64) * SIZE;
        let allowed = response + TOLD + 100 + 2 * SIZE;
        assert!(after <= allowed && after + 2 * SIZE > allowed, "{after} of {allowed}");
    }
}

#[test]
fn pfc_16_and_17_mac_control_is_never_forwarded_and_acts_if_addressed_to_the_port() {
    let own = pause_config().address;
    for source in [MacAddress::default(), MacAddress::BROADCAST, own] {
        for (to, honoured) in [
            (MacAddress::MAC_CONTROL, true),
            (own, true),
            (MacAddress::BROADCAST, false),
            (MacAddress::from_number(5), false),
        ] {
            let mut pair = backlogged(1 << 3, 1);
            let mut frame = from_peer(&pfc(1 << 3, 9));
            frame.octets[..6].copy_from_slice(&to.octets());
            frame.octets[6..12].copy_from_slice(&source.octets());
            let arrival = pair.hear(0, frame);
            let lost = Arrival::Lost(DropReason::MacControlAddress);
            assert_eq!(arrival, if honoured { Arrival::Control } else { lost });
            pair.run_until(ns(10_000));
            let expected = if honoured { 9 * QUANTUM } else { 0 };
            assert_eq!(pair.sources[0].sent, [(ns(expected), 3)]);
        }
    }
}

#[test]
fn pfc_18_what_is_malformed_is_counted_by_its_reason_and_changes_nothing() {
    let good = from_peer(&pfc(1 << 3, 0xffff));
    let amended = |amend: &dyn Fn(&mut Frame)| {
        let mut frame = good.clone();
        amend(&mut frame);
        frame
    };
    let tag = |frame: &mut Frame| {
        let tail = frame.octets.split_off(12);
        frame.octets.extend_from_slice(&[0x81, 0, 0x60, 0]);
        frame.octets.unsplit(tail);
    };
    let aborted = |frame: &mut Frame| frame.integrity = Integrity::Aborted;
    for (frame, reason) in [
        (amended(&|frame| frame.octets.truncate(59)), DropReason::MacControlLength),
        (amended(&|frame| frame.octets.truncate(14)), DropReason::MacControlLength),
        (amended(&|frame| frame.octets[15] = 2), DropReason::MacControlOpcode),
        (amended(&tag), DropReason::MacControlTag),
        (amended(&aborted), DropReason::MacControlAborted),
    ] {
        let mut pair = backlogged(1 << 3, 1);
        assert_eq!(pair.hear(0, frame), Arrival::Lost(reason));
        assert_eq!(pair.sources[0].sent, [(Instant::ZERO, 3)]);
        assert_eq!((pair.reading(0).drops.get(reason), reason.is_end_to_end()), (1, false));
    }
    // The vector's high octet alone is ignored; that it was not zero is counted.
    let mut pair = backlogged(1 << 3, 1);
    assert_eq!(pair.hear(0, amended(&|frame| frame.octets[16] = 1)), Arrival::Control);
    assert_eq!(pair.sources[0].sent, []);
    assert_eq!(pair.reading(0).drops.get(DropReason::PfcVector), 1);
}

#[test]
fn pfc_19_asymmetric_pfc_obeys_for_all_and_asks_for_what_is_lossless() {
    let mut pair = backlogged(0xff, 1);
    pair.hear(0, from_peer(&pfc(0xff, 100)));
    pair.run_until(ns(100 * QUANTUM - 1));
    assert_eq!(pair.sources[0].sent, []);
    pair.demand(0, 0xff);
    pair.run_until(ns(100 * QUANTUM + TOLD));
    let told = MacControl::Pfc(Pfc::default().with(crate::ids::Priority::truncate(3), 0xffff));
    assert_eq!(pair.controls(1), [(ns(100 * QUANTUM - 1 + TOLD), told)]);
}

#[test]
fn one_frame_announces_all_changes_before_its_departure() {
    let all = PauseConfig { lossless: 0xff, ..pause_config() };
    let mut pair = Pair::new([pause_config(), all]);
    pair.sources[1].left[0] = 2;
    pair.run_until(ns(1));
    pair.demand(1, 0b1);
    pair.demand(1, 0b1101_0001);
    pair.demand(1, 0b0101_0000);
    pair.run_until(ns(SIZE));
    pair.demand(1, 0b0000_0000);
    pair.demand(1, 0b0100_0010);
    pair.run_until(ns(4 * SIZE));
    let [(first, xoff), (second, change)] = pair.controls(0)[..] else { panic!() };
    assert_eq!((first, second), (ns(SIZE + TOLD), ns(SIZE + 2 * 64 + 100)));
    let times = |priorities: u8| std::array::from_fn(|n| 0xffff * u16::from(priorities >> n & 1));
    let frame =
        |enabled, silent| MacControl::Pfc(Pfc { reserved: 0, enabled, times: times(silent) });
    assert_eq!(xoff, frame(0b0101_0000, 0b0101_0000));
    assert_eq!(change, frame(0b0001_0010, 0b0000_0010), "XON and XOFF in one");
}

#[test]
fn a_pause_takes_the_place_of_the_one_before_be_it_shorter() {
    let mut pair = backlogged(1 << 3, 1);
    pair.hear(0, from_peer(&pfc(1 << 3, 0xffff)));
    pair.run_until(ns(100));
    pair.hear(0, from_peer(&pfc(1 << 3, 1)));
    pair.run_until(ns(1000));
    assert_eq!(pair.sources[0].sent, [(ns(100 + QUANTUM), 3)]);
    assert_eq!(named(&pair.reading(0), "rx_prio3_pause_transition"), 1);
}

#[test]
fn without_pfc_any_request_pauses_the_whole_link() {
    let global = PauseConfig { mode: PauseMode::Global, ..pause_config() };
    let mut pair = Pair::new([global.clone(), global]);
    pair.sources[0].left = [1; 8];
    pair.sources[0].ready = ns(TOLD);
    pair.demand(1, 1 << 5);
    pair.run_until(ns(1000));
    pair.hear(0, from_peer(&pfc(0xff, 0)));
    pair.run_until(ns(2000));
    assert_eq!(pair.sources[0].sent, [], "PFC is not obeyed");
    pair.demand(1, 0);
    pair.run_until(ns(20 * SIZE));
    assert_eq!(pair.sources[0].sent[0].0, ns(2000 + TOLD));
    let told: Vec<_> = pair.controls(0).into_iter().map(|(_, control)| control).collect();
    let pause = |time| MacControl::Pause(Pause { time });
    assert_eq!(told, [pause(0xffff), pfc(0xff, 0), pause(0)]);
    let reading = pair.reading(0);
    let names = ["rx_global_pause", "rx_global_pause_duration", "rx_global_pause_transition"];
    assert_eq!(names.map(|name| named(&reading, name)), [2, 2, 1]);
    assert_eq!(reading.lanes[0].counters.pause_ps, 2_000_000);
}

#[test]
fn what_arrives_is_checked_counted_from_da_to_fcs_and_takes_no_buffer_of_the_port() {
    let mut pair = pair();
    assert!(matches!(pair.hear(0, tagged(5, 1518)), Arrival::Packet(headers)
        if headers.lane.get() == 5 && headers.size == Bytes::new(1522)));
    assert!(matches!(pair.hear(0, tagged(5, 20)), Arrival::Packet(h) if h.size == Bytes::new(64)));
    assert_eq!(pair.hear(0, tagged(5, 1519)), Arrival::Lost(DropReason::Mtu));
    assert_eq!(pair.hear(0, packet(0, 64)), Arrival::Lost(DropReason::Malformed));
    let credit = Frame::unchecked(FrameKind::InfinibandLink, [0; 6][..].into());
    assert_eq!(pair.hear(0, credit), Arrival::Lost(DropReason::LinkPacket));
    let mut aborted = tagged(5, 100);
    aborted.integrity = Integrity::Aborted;
    assert_eq!(pair.hear(0, aborted), Arrival::Lost(DropReason::Aborted));
    let five = VirtualLane::truncate(5);
    assert_eq!(pair.ports[0].in_use(five), Bytes::ZERO);
    pair.ports[0].note_input(five, Bytes::new(1522), pair.now);
    assert_eq!(pair.ports[0].in_use(five), Bytes::new(1522));
    let lane = pair.reading(0).lanes[5].counters;
    assert_eq!((lane.rx_frames, lane.rx_bytes, lane.in_queue.value), (2, 1586, 1522));
}

proptest! {
    /// Whatever is demanded and whatever is lost: no frame of a paused priority ever starts, and no
    /// pause outlasts the last request by more than the longest pause time.
    #[test]
    fn no_frame_starts_during_a_pause_and_no_pause_lasts_for_ever(
        steps in prop::collection::vec((any::<u8>(), 0u64..200_000, any::<bool>()), 1..20),
    ) {
        let all = PauseConfig { lossless: 0xff, ..pause_config() };
        let mut pair = Pair::new([pause_config(), all]);
        pair.sources[0].left = [100_000; 8];
        for (priorities, time, lost) in steps {
            pair.lost[1] = usize::from(lost);
            pair.demand(1, priorities);
            pair.run_until(pair.now + Duration::from_ns(time));
        }
        pair.lost[1] = 1;
        pair.demand(1, 0);
        let stop = pair.now;
        pair.run_until(stop + Duration::from_ns(65_535 * QUANTUM + 20 * SIZE));
        // The timers again, from the frames that end 0 received.
        let mut heard = pair.controls(0).into_iter().peekable();
        let mut until = [Instant::ZERO; 8];
        for (start, lane) in &pair.sources[0].sent {
            while let Some((at, MacControl::Pfc(pfc))) = heard.next_if(|(at, _)| at <= start) {
                for n in (0..8).filter(|n| pfc.enabled >> n & 1 == 1) {
                    until[n] = at + Duration::from_ns(u64::from(pfc.times[n]) * QUANTUM);
                }
            }
            prop_assert!(*start >= until[usize::from(*lane)], "priority {lane} at {start}");
        }
        let end = pair.now;
        for lane in 0..8 {
            let last = pair.sources[0].sent.iter().rev().find(|(_, of)| *of == lane).unwrap();
            prop_assert!(end.since(last.0) <= Duration::from_ns(20 * SIZE), "{lane}: {last:?}");
        }
    }
}
