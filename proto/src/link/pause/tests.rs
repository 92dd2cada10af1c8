//! The halves by themselves: lengths of quanta, slow obedience, what is due when. Links are in
//! `port/tests/ethernet.rs`.

use super::*;
use std::num::NonZeroU16;

const RATE: BitRate = BitRate::gbps(8);
const THREE: VirtualLane = VirtualLane::truncate(3);

fn flow(config: &PauseConfig) -> PauseFlow {
    PauseFlow::new(config, RATE)
}

fn ns(n: u64) -> Instant {
    Instant::from_ps(n * 1000)
}

fn xoff(time: u16) -> Pfc {
    Pfc { reserved: 0, enabled: 1 << 3, times: [time; 8] }
}

#[test]
fn a_quantum_is_512_bit_times_of_the_links_own_rate() {
    for (rate, time, ps) in [
        (100_000_000, 65_535, 335_539_200_000),
        (10_000_000_000, 1, 51_200),
        (10_000_000_000, 65_535, 3_355_392_000),
        (400_000_000_000, 65_535, 83_884_800),
    ] {
        assert_eq!(quanta(time, BitRate::new(rate).unwrap()), Duration::from_ps(ps));
    }
}

#[test]
fn a_port_that_sends_without_a_rate_pauses_by_a_nominal_one() {
    let config = PauseConfig { quanta_rate: Some(BitRate::gbps(10)), ..Default::default() };
    let mut flow = PauseFlow::new(&config, BitRate::gbps(10_000));
    flow.on_pfc(&xoff(65_535), ns(0));
    assert_eq!(flow.poll_timeout(), Instant::from_ps(3_355_392_000));
    // A quarter of the pause time: 120 frames in 100 ms, not 120 000.
    let mut flow = PauseFlow::new(&config, BitRate::gbps(10_000));
    flow.demand(1 << 3, ns(0));
    flow.poll_control(ns(0));
    assert_eq!(flow.control_due(Instant::from_ps(838_847_999)), None);
    assert!(flow.control_due(Instant::from_ps(838_848_000)).is_some());
}

#[test]
fn a_slow_ear_obeys_later_counts_from_then_and_leaves_no_gap_to_a_repetition() {
    let mut flow = flow(&PauseConfig { response: Duration::from_ns(100), ..Default::default() });
    assert_eq!(flow.on_pfc(&xoff(1), ns(0)).xoff, 1 << 3);
    assert!(flow.is_paused(THREE) && flow.may_start(THREE, ns(99)));
    assert!(!flow.may_start(THREE, ns(100)));
    // It would run out at 164; the repetition is obeyed at 260.
    assert_eq!(flow.on_pfc(&xoff(2), ns(160)), PauseChange::default());
    assert_eq!(flow.poll_expired(ns(387)), None);
    assert!(!flow.may_start(THREE, ns(387)));
    assert_eq!(flow.poll_timeout(), ns(388));
    assert_eq!(flow.poll_expired(ns(400)), Some((ns(388), 1 << 3)));
    assert!(flow.may_start(THREE, ns(400)));
    assert_eq!(flow.paused_for(THREE, ns(400)), Duration::from_ns(288));
}

#[test]
fn xon_within_the_response_time_undoes_what_was_never_obeyed() {
    let mut flow = flow(&PauseConfig { response: Duration::from_ns(100), ..Default::default() });
    flow.on_pfc(&xoff(9), ns(0));
    assert_eq!(flow.on_pfc(&xoff(0), ns(50)).xon, 1 << 3);
    assert!(flow.may_start(THREE, ns(100)));
    assert_eq!(flow.paused_for(THREE, ns(200)), Duration::ZERO);
}

#[test]
fn a_change_reverted_before_the_line_is_free_is_never_announced() {
    let mut flow = flow(&PauseConfig::default());
    flow.demand(1 << 3, ns(5));
    assert_eq!(flow.control_due(ns(9)), Some(ns(5)));
    flow.demand(0, ns(6));
    assert_eq!(flow.control_due(ns(9)), None);
    flow.demand(1 << 4, ns(7));
    assert_eq!(flow.control_due(ns(9)), None, "priority 4 is not lossless");
}

#[test]
fn a_repetition_that_waits_for_the_line_needs_no_timer() {
    let pause_time = NonZeroU16::new(100).unwrap();
    let mut flow = flow(&PauseConfig { pause_time, ..Default::default() });
    flow.demand(1 << 3, ns(0));
    let xoff = PauseChange { xoff: 1 << 3, quanta: 100, xon: 0 };
    assert_eq!(flow.poll_control(ns(0)).1, xoff);
    let due = ns(25 * 64);
    assert_eq!((flow.poll_timeout(), flow.control_due(ns(1599))), (due, None));
    flow.handle_timeout(due);
    assert_eq!((flow.poll_timeout(), flow.control_due(ns(1700))), (Instant::NEVER, Some(due)));
    assert_eq!(flow.poll_control(ns(1700)).1, xoff);
    assert_eq!(flow.poll_timeout(), ns(1700 + 25 * 64));
}

#[test]
fn without_pause_mode_no_pause_is_sent_or_obeyed() {
    let mut flow = flow(&PauseConfig { mode: PauseMode::None, ..Default::default() });
    flow.demand(0xff, ns(0));
    assert_eq!(flow.control_due(ns(1)), None);
    assert_eq!(flow.on_pfc(&xoff(9), ns(0)), PauseChange::default());
    assert_eq!(flow.on_pause(Pause { time: 9 }, ns(0)), PauseChange::default());
    let mut named = Vec::new();
    flow.read(ns(1), &mut named);
    let names: Vec<_> = named.iter().map(|(name, total)| (name.as_str(), *total)).collect();
    assert_eq!(names, [("rx_global_pause", 1), ("rx_pfc", 1), ("rx_prio3_pause", 1)]);
}

#[test]
fn what_is_sent_and_ended_by_an_outage_is_counted_by_its_kind() {
    let counted = |mode| {
        let mut flow = flow(&PauseConfig { mode, ..Default::default() });
        flow.demand(1 << 3, ns(0));
        flow.poll_control(ns(0));
        flow.forget(ns(2000));
        flow.poll_control(ns(2000));
        let mut named = Vec::new();
        flow.read(ns(3000), &mut named);
        named.into_iter().map(|(name, total)| format!("{name} {total}")).collect::<Vec<_>>()
    };
    let of = |stem: &str| ["", "_duration", "_transition"].map(|end| format!("{stem}_pause{end}"));
    let due = |[frames, time, ends]: [String; 3]| {
        [format!("{frames} 2"), format!("{time} 3"), format!("{ends} 1")].to_vec()
    };
    assert_eq!(counted(PauseMode::Global), due(of("tx_global")));
    let of_priority = due(of("tx_prio3"));
    assert_eq!(counted(PauseMode::Pfc), [vec!["tx_pfc 2".to_owned()], of_priority].concat());
}

#[test]
fn an_outage_clears_announced_pauses_and_standing_requests_are_announced_again() {
    let mut flow = flow(&PauseConfig::default());
    flow.on_pfc(&xoff(9), ns(0));
    flow.demand(1 << 3, ns(0));
    flow.poll_control(ns(0));
    flow.forget(ns(100));
    assert!(flow.may_start(THREE, ns(100)));
    assert_eq!((flow.opened_at(THREE), flow.poll_timeout()), (ns(100), Instant::NEVER));
    assert_eq!(flow.paused_for(THREE, ns(200)), Duration::from_ns(100));
    assert_eq!(flow.control_due(ns(200)), Some(ns(100)));
    assert_eq!(
        flow.poll_control(ns(200)).1,
        PauseChange { xoff: 1 << 3, quanta: u16::MAX, xon: 0 }
    );
}
