//! Ethernet: frames through a switch unchanged, marked, flooded, refused; what cannot be configured.

use super::bench::{
    BOTH, DSCP3, FRAME, Look, P3, PAYLOAD, PORTS, bench, config, data, lossy, marking_above, packet,
};
use crate::config::{Read, StormAction, SwitchConfig, WatchdogConfig};
use crate::memory::headroom::MemoryError;
use crate::switch::{ConfigError, Switch};
use bytes::BytesMut;
use proptest::prelude::*;
use proto::counters::DropReason;
use proto::events::{EventKind, MarkKind};
use proto::frame::{Frame, FrameKind};
use proto::ids::{Ecn, Lid, PortNumber, Priority, VirtualLane};
use proto::link::{CreditConfig, FlowControlConfig, PauseConfig, PauseMode};
use proto::units::{Bytes, Duration};
use proto::wire::classify::classify;
use proto::wire::ethernet::{Envelope, MacAddress, MacControl, Pfc, ethertype, plan};
use proto::wire::roce::Layout;
use proto::wire::roce::checks::{carried_icrc, verify_checksums, verify_icrc};
use testbed::Bed;

#[test]
fn a_frame_leaves_by_its_route_unchanged_and_nothing_stays_behind() {
    let mut bench = bench(config());
    bench.inject(1, data(1, 3, 7));
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.sent(3), [data(1, 3, 7)]);
    assert_eq!(bench.counts(), [0, 0, 1, 0]);
    assert!(bench.is_empty());
    assert_eq!(bench.reading().ports[2].lanes[3].counters.tx_bytes, FRAME);
}

/// ROCE-05.
#[test]
fn ce_is_set_where_it_is_understood_and_checksum_and_icrc_hold() {
    let mut bench = marking_above(config(), 5);
    bench.pfc(4, BOTH, u16::MAX);
    for psn in 0..10 {
        bench.inject(1, data(1, 4, psn));
        if psn < 9 {
            bench.inject(2, lossy(2, 4, psn));
        }
    }
    bench.pfc(4, BOTH, 0);
    bench.run_for(Duration::from_us(100));
    let (mut marked, mut plain) = (0, 0);
    for frame in bench.sent(4) {
        verify_checksums(&frame.octets).unwrap();
        verify_icrc(&frame.octets).unwrap();
        let layout = Layout::find(&frame.octets).unwrap().unwrap();
        let headers = classify(frame.kind, &frame.octets).unwrap();
        let sent = match headers.ecn {
            Ecn::NotCapable => lossy(2, 4, headers.psn),
            _ => data(1, 4, headers.psn),
        };
        assert_eq!(carried_icrc(&frame.octets, &layout), carried_icrc(&sent.octets, &layout));
        let differs: Vec<usize> =
            (0..sent.octets.len()).filter(|at| sent.octets[*at] != frame.octets[*at]).collect();
        match headers.ecn {
            // Traffic class, and the checksum of the IPv4 header.
            Ecn::CongestionExperienced => {
                marked += 1;
                assert!(differs.iter().all(|at| [15, 24, 25].contains(at)), "{differs:?}");
            }
            _ => {
                plain += 1;
                assert_eq!(differs, [0; 0]);
            }
        }
    }
    // The queue of ten is above five until five have left, the one that leaves included.
    assert_eq!((marked, plain), (5, 14));
    assert_eq!(bench.named(4, "queue3_ecn_marked_packets"), 5);
    let marks = bench.events.iter().filter_map(|event| match &event.kind {
        EventKind::Mark { flow, mark: MarkKind::Ce, .. } => Some((flow.source, flow.destination)),
        _ => None,
    });
    assert_eq!(marks.collect::<Vec<_>>(), [(1, 4); 5], "adapters go by their numbers");
}

/// ROCE-01.
#[test]
fn dcqcn_marks_nothing_below_kmin_and_everything_above_kmax() {
    let mut config = config();
    config.scheme.kind = "dcqcn".to_owned();
    let params = format!("kmin = \"{} B\"\nkmax = \"{} B\"\npmax = 0.5", 5 * FRAME, 10 * FRAME);
    config.scheme.params = params.parse().unwrap();
    let mut bench = bench(config);
    bench.pfc(4, 1 << P3, u16::MAX);
    (0..22).for_each(|psn| bench.inject(1, data(1, 4, psn)));
    bench.pfc(4, 1 << P3, 0);
    bench.run_for(Duration::from_us(100));
    let is_marked = |frame: &Frame| {
        let headers = classify(frame.kind, &frame.octets).unwrap();
        headers.ecn == Ecn::CongestionExperienced
    };
    let marked: Vec<bool> = bench.sent(4).iter().map(is_marked).collect();
    assert_eq!(marked.len(), 22);
    assert!(marked[..12].iter().all(|marked| *marked), "22 to 11 frames stand: {marked:?}");
    assert!(!marked[17..].iter().any(|marked| *marked), "5 and less: {marked:?}");
}

#[test]
fn a_mark_of_an_earlier_switch_stays_and_is_not_counted_again() {
    let mut bench = marking_above(config(), 0);
    let frame = packet(1, 4, DSCP3, Ecn::CongestionExperienced, 0, PAYLOAD);
    bench.inject(1, frame.clone());
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.sent(4), [frame]);
    assert_eq!(bench.named(4, "queue3_ecn_marked_packets"), 0);
}

fn raw(destination: MacAddress, source: MacAddress) -> Frame {
    let mut octets = BytesMut::zeroed(60);
    Envelope::untagged(destination, source, ethertype::CABLE_SHIM).emit(&mut octets);
    Frame::intact(FrameKind::Ethernet, octets)
}

#[test]
fn unknown_and_broadcast_go_everywhere_but_back_and_share_one_place() {
    let mut bench = bench(config());
    let stranger = MacAddress::from_number(0x7cfe_9064_3b32);
    let source = plan::mac(Lid::new(1));
    for destination in [MacAddress::BROADCAST, stranger] {
        bench.inject(1, raw(destination, source));
    }
    let lane = VirtualLane::ZERO;
    let memory = bench.device.memory.as_ref().expect("a switch of Ethernet has one");
    assert_eq!(memory.held(PortNumber::from_index(0), lane), Bytes::new(128));
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.counts(), [0, 2, 2, 2]);
    assert!(bench.is_empty());
    assert_eq!(bench.named(1, "flooded_packets"), 2);
    assert_eq!(bench.reading().balance.injected, 4);
    bench.inject(3, raw(source, stranger));
    bench.inject(1, raw(stranger, source));
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.counts(), [1, 2, 3, 2]);
}

/// PFC-16, and what other groups of the link are for.
#[test]
fn what_belongs_to_the_link_is_never_forwarded() {
    let mut bench = bench(config());
    let source = plan::mac(Lid::new(1));
    for port in 1..=PORTS {
        bench.pfc(port, 1 << P3, 1);
        bench.inject(port, raw(MacAddress::from_number(0x0180_c200_000e), source));
        let pfc = MacControl::Pfc(Pfc::default().with(Priority::truncate(P3), 1));
        let mut octets = pfc.to_octets(source);
        octets[..6].copy_from_slice(&plan::mac(Lid::new(2)).octets());
        bench.inject(port, Frame::intact(FrameKind::Ethernet, octets[..].into()));
    }
    bench.run_for(Duration::from_us(5));
    assert_eq!(bench.counts(), [0; 4]);
    assert_eq!((1..=PORTS).map(|p| bench.drops(p, DropReason::ReservedAddress)).sum::<u64>(), 4);
}

#[test]
fn a_switch_that_cannot_keep_its_word_is_refused() {
    let with = |change: fn(&mut SwitchConfig)| {
        let mut config = config();
        change(&mut config);
        Switch::new(config).err()
    };
    // 300 ns at 10 Gb/s, and two frames of 1500 octets with all headers there are.
    let needed = Bytes::new(375 + 2 * (1500 + 14 + 20 + 8 + 12 + 4 + 4 + 56) + 64);
    let (port, given) = (PortNumber::from_index(0), Bytes::ZERO);
    let expected = ConfigError::Room(MemoryError::Headroom { port, given, needed });
    assert_eq!(with(|c| c.memory.headroom = Bytes::ZERO), Some(expected));
    let longer = with(|c| c.ports[2].delay = Duration::from_us(10));
    assert!(matches!(longer, Some(ConfigError::Room(MemoryError::Headroom { port, .. }))
        if port.index() == 2));
    let unpaused = with(|c| {
        c.memory.headroom = Bytes::ZERO;
        for port in &mut c.ports {
            let mode = PauseMode::None;
            port.link.control =
                FlowControlConfig::Pause(PauseConfig { mode, ..PauseConfig::default() });
        }
    });
    assert_eq!(unpaused, None, "what is lossy needs no headroom");
    let mixed =
        with(|c| c.ports[1].link.control = FlowControlConfig::Credit(CreditConfig::default()));
    assert_eq!(mixed, Some(ConfigError::Technology(PortNumber::from_index(1))));
    let routing = with(|c| c.routing.kind = Some("forwarding-table".to_owned()));
    assert!(matches!(routing, Some(ConfigError::Routing(_))));
}

#[test]
fn a_configuration_comes_back_from_its_table() {
    let mut config = config();
    config.memory.set("threshold", 3);
    config.memory.set("headroom_pool", Bytes::new(40 * FRAME));
    config.watchdog = Some(WatchdogConfig {
        detection: Duration::from_us(2_000),
        restoration: Duration::from_us(2_000),
        poll: Duration::from_us(500),
        action: StormAction::Forward,
    });
    let table = toml::Table::try_from(&config).unwrap();
    let text = toml::to_string(&table).unwrap();
    assert_eq!(toml::from_str::<SwitchConfig>(&text).unwrap(), config);
    let read: SwitchConfig = table.try_into().unwrap();
    assert!(Switch::new(read).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes in, every frame is sent, kept or counted, and in the end nothing is held.
    #[test]
    fn every_frame_is_sent_kept_or_counted_and_the_account_returns_to_zero(
        model in 0usize..3,
        read in any::<bool>(),
        frames in proptest::collection::vec(
            (1..=PORTS, 0u8..12, 0u16..7, 0u8..64, 0usize..1500, 0u64..3_000),
            1..300,
        ),
    ) {
        let mut config = config();
        config.memory.kind = ["shared-pool", "per-input", "global-watermark"][model].to_owned();
        config.memory.read = if read { Read::Multi } else { Read::Single };
        let mut bench = marking_above(config, 2);
        let mut fed = 0u64;
        for (psn, (port, kind, to, dscp, payload, ns)) in (0..).zip(frames) {
            let frame = match kind {
                0 => raw(MacAddress::BROADCAST, plan::mac(Lid::new(1))),
                1 => raw(MacAddress::from_number(u64::from(dscp) + 1), plan::mac(Lid::new(1))),
                2 => Frame::unchecked(FrameKind::Ethernet, vec![dscp; payload][..].into()),
                3 => {
                    bench.pfc(port, 1 << (dscp & 7), if dscp & 8 == 0 { 0 } else { 3_000 });
                    continue;
                }
                _ => packet(1, to, dscp, Ecn::from_bits(kind), psn, payload),
            };
            fed += 1;
            bench.inject(port, frame);
            bench.run_for(Duration::from_ns(ns));
            let balance = bench.reading().balance;
            let sent: usize = bench.counts().iter().sum();
            prop_assert_eq!(fed + balance.injected, sent as u64 + bench.lost() + balance.buffered);
        }
        bench.run_for(Duration::from_us(2_000));
        prop_assert!(bench.is_empty());
    }
}
