//! PAUSE and PFC: obeyed per priority, sent by a slow host, and without end in a storm.

use super::cable::*;
use super::*;
use crate::config::{
    ClassConfig, DrainConfig, Encapsulation, NicConfig, RoceConfig, RoceVersion, StormConfig,
};
use proto::counters::DropReason;
use proto::ids::ServiceLevel;
use proto::link::{FlowControlConfig, PauseMode};
use proto::units::{BitRate, Duration};
use proto::wire::ethernet::{MacAddress, MacControl, Pfc};

/// NIC 0 sends `messages` of one full frame each on service level 0, which is priority 3.
fn sending(messages: u64) -> NicConfig {
    on_ethernet(
        NicConfig { traffic: vec![burst(2, 2048, messages)], ..config(1) },
        RoceVersion::V2Ipv4,
    )
}

fn roce(config: &mut NicConfig) -> &mut RoceConfig {
    match &mut config.wire {
        Encapsulation::Roce(roce) => roce,
        Encapsulation::Infiniband => panic!("on Ethernet"),
    }
}

fn set_mode(config: &mut NicConfig, mode: PauseMode) {
    match &mut config.link.control {
        FlowControlConfig::Pause(pause) => pause.mode = mode,
        FlowControlConfig::Credit(_) => panic!("on Ethernet"),
    }
}

/// A PFC frame that pauses `priorities` for `time` quanta; 0 resumes them.
fn pfc(priorities: u8, time: u16) -> Frame {
    let pfc = Pfc { reserved: 0, enabled: priorities, times: [time; 8] };
    let octets = MacControl::Pfc(pfc).to_octets(MacAddress::from_number(1));
    Frame::unchecked(FrameKind::Ethernet, octets[..].into())
}

fn deliver(pair: &mut Pair, frame: Frame) {
    let now = pair.now;
    pair.nics[0].handle_frame(PortNumber::from_index(0), frame, now, now);
}

#[test]
fn a_paused_priority_stops_and_the_others_continue() {
    let mut settings = sending(100);
    let other = ClassConfig { service_level: ServiceLevel::truncate(4), ..settings.classes[0] };
    settings.classes.push(other);
    settings.traffic.push(crate::config::TrafficConfig { class: 1, ..burst(2, 2048, 100) });
    let mut pair = Pair::alike(settings);
    pair.advance(us(50));
    deliver(&mut pair, pfc(1 << 3, u16::MAX));
    pair.advance(us(100));
    let on_lane =
        |pair: &mut Pair, lane: usize| pair.reading(0).ports[0].lanes[lane].counters.tx_frames;
    let (paused, running) = (on_lane(&mut pair, 3), on_lane(&mut pair, 4));
    pair.advance(us(150));
    assert_eq!(on_lane(&mut pair, 3), paused, "priority 3 waits");
    let sent = on_lane(&mut pair, 4) - running;
    // 50 µs at 8 Gb/s are 23.7 frames of 2110 octets.
    assert!((23..=24).contains(&sent), "{sent} frames of priority 4");
    deliver(&mut pair, pfc(1 << 3, 0));
    pair.advance(us(700));
    assert_eq!((on_lane(&mut pair, 3), on_lane(&mut pair, 4)), (100, 100));
    pair.assert_conserved(0, 0);
}

#[test]
fn a_pause_of_the_data_priority_does_not_delay_cnps() {
    let mut settings = sending(40);
    settings.scheme.kind = "dcqcn".to_owned();
    settings.scheme.params = "reaction = \"frozen\"".parse().unwrap();
    let mut pair = Pair::alike(settings)
        .with_impairment(|seen| if seen.is_data() { Impairment::Mark } else { Impairment::Pass });
    // The receiver must not send on priority 3: acknowledgements wait, CNPs do not.
    let now = pair.now;
    pair.nics[1].handle_frame(PortNumber::from_index(0), pfc(1 << 3, u16::MAX), now, now);
    pair.advance(us(90));
    assert_eq!(pair.total(1, "np_cnp_sent"), 2);
    assert!(pair.seen.iter().all(|seen| seen.from == 0 || !seen.is_data()));
    let acks = pair.seen.iter().filter(|seen| seen.from == 1 && seen.octets.len() < 74);
    assert_eq!(acks.count(), 0);
}

/// The receiver's host drains 2 Gb/s of an 8 Gb/s line; its buffer has 152 064 octets.
fn slow(mode: PauseMode) -> (NicConfig, NicConfig) {
    let mut sender = sending(400);
    sender.ack_timeout = Duration::from_us(2_000);
    set_mode(&mut sender, mode);
    let mut receiver = NicConfig { traffic: Vec::new(), ..sender.clone() };
    receiver.name = "h2".to_owned();
    receiver.lid = proto::ids::Lid::new(2);
    roce(&mut receiver).drain = Some(DrainConfig {
        rate: BitRate::gbps(2),
        xoff: Bytes::new(60_000),
        xon: Bytes::new(30_000),
    });
    (sender, receiver)
}

#[test]
fn a_slow_host_pauses_its_peer_and_loses_nothing() {
    for mode in [PauseMode::Pfc, PauseMode::Global] {
        let (sender, receiver) = slow(mode);
        let mut pair = Pair::new(sender, receiver);
        pair.advance(us(1_000));
        let held = pair.reading(1).ports[0].lanes[3].counters.in_queue;
        // One frame is in flight when xOFF is exceeded, and another one when the XOFF arrives.
        assert!((60_000..=60_000 + 3 * 2_110).contains(&held.max), "{}", held.max);
        let buffered = pair.reading(1).balance.buffered;
        assert_eq!(buffered, held.value / 2_110);
        // 2 Gb/s are 118.4 frames in 1000 µs; the first is drained after 7 µs.
        let taken = pair.reception(1).messages;
        assert!((116..=118).contains(&taken), "{taken} in {mode:?}");
        pair.advance(us(5_000));
        assert_eq!((pair.reception(1).messages, pair.flow(0).completed), (400, 400));
        assert_eq!(pair.reading(1).ports[0].drops.total(), 0);
        assert_eq!(pair.reading(1).balance.buffered, 0);
        assert!(pair.controls.iter().all(|(from, ..)| *from == 1) && pair.controls.len() >= 4);
        let (_, _, last) = pair.controls[pair.controls.len() - 1];
        let ends = match last {
            MacControl::Pause(pause) => mode == PauseMode::Global && pause.time == 0,
            MacControl::Pfc(pfc) => pfc.enabled == 1 << 3 && pfc.times[3] == 0,
            MacControl::Unknown(_) => false,
        };
        assert!(ends, "the last frame resumes: {last:?}");
        pair.assert_conserved(0, 0);
    }
}

#[test]
fn without_pause_a_slow_host_drops_and_everything_still_arrives_once() {
    let (sender, receiver) = slow(PauseMode::None);
    let mut pair = Pair::new(sender, receiver).run_until(us(60_000));
    let lost = pair.drops(1, DropReason::ReceiveBuffer);
    assert!(lost > 0);
    let capacity = 2 * 36 * 33 * 64;
    let held = pair.reading(1).ports[0].lanes[3].counters.in_queue;
    assert!(held.max <= capacity && held.max > capacity - 2_110);
    assert_eq!((pair.reception(1).messages, pair.flow(0).completed), (400, 400));
    assert!(pair.controls.is_empty());
    pair.assert_conserved(0, 0);
}

#[test]
fn a_storm_pauses_the_peer_without_end() {
    let mut receiver = NicConfig { traffic: Vec::new(), ..sending(0) };
    receiver.name = "h2".to_owned();
    receiver.lid = proto::ids::Lid::new(2);
    roce(&mut receiver).storm = Some(StormConfig { start: us(100), priorities: 1 << 3 });
    let mut pair = Pair::new(sending(2_000), receiver);
    pair.advance(us(20_000));
    let last = pair.data_from(0).last().expect("data before the storm").at;
    assert!(last > us(95) && last < us(105), "{last}");
    // 0xFFFF quanta at 8 Gb/s are 4194 µs. A refresh after a quarter of that leaves no gap.
    let times: Vec<Instant> = pair.controls.iter().map(|(_, at, _)| *at).collect();
    assert!(times.len() >= 19 && times[0] < us(103), "{times:?}");
    assert!(times.windows(2).all(|two| two[1].since(two[0]) < Duration::from_us(1_100)));
    let is_storm = |(_, _, control): &(usize, Instant, MacControl)| matches!(control, MacControl::Pfc(pfc) if pfc.enabled == 1 << 3 && pfc.times[3] == u16::MAX);
    assert!(pair.controls.iter().all(is_storm));
}

/// A NIC that never sends PAUSE has no other use for the buffer.
#[test]
fn the_buffer_of_a_pfc_frame_is_reused_for_data() {
    let mut nic = Nic::new(sending(1)).unwrap();
    let mut frame = pfc(1 << 5, 9);
    frame.octets.reserve(4_096);
    let buffer = frame.octets.as_ptr();
    nic.handle_frame(PortNumber::from_index(0), frame, us(6), us(6));
    let sent = nic.poll_transmit(us(6)).expect("a data frame leaves");
    assert_eq!(sent.frame.octets.as_ptr(), buffer);
}
