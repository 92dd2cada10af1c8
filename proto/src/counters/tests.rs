//! Gauges, conditions, buckets and the names of reasons.

use super::*;
use crate::wire::error::{ParseError, Reason};

#[test]
fn a_gauge_integrates_what_it_held() {
    let mut gauge = Gauge::default();
    gauge.set(10, Instant::from_ps(100));
    gauge.set(4, Instant::from_ps(150));
    gauge.close(Instant::from_ps(250));
    assert_eq!(gauge.integral, 10 * 50 + 4 * 100);
    assert_eq!(gauge.square_integral, 100 * 50 + 16 * 100);
    assert_eq!((gauge.min, gauge.max), (0, 10));
    gauge.restart_watermarks();
    assert_eq!((gauge.min, gauge.max), (4, 4));
}

#[test]
fn a_condition_counts_only_while_it_holds() {
    let mut hold = Condition::default();
    assert!(hold.begin(Instant::from_ps(5)));
    assert!(!hold.begin(Instant::from_ps(6)));
    assert_eq!(hold.total(Instant::from_ps(9)), Duration::from_ps(4));
    assert_eq!(hold.end(Instant::from_ps(10)), Some(Duration::from_ps(5)));
    assert_eq!(hold.end(Instant::from_ps(11)), None);
    assert_eq!(hold.total(Instant::from_ps(99)), Duration::from_ps(5));
}

#[test]
fn latency_buckets_are_contiguous_and_hold_their_floor() {
    for bucket in 0..400 {
        let floor = LatencyReading::bucket_floor(bucket);
        assert_eq!(LatencyReading::bucket(floor), bucket);
        assert_eq!(
            LatencyReading::bucket(floor + 1),
            if bucket < 32 { bucket + 1 } else { bucket }
        );
    }
}

#[test]
fn tables_histograms_and_spans_add_up() {
    let (mut drops, mut more) = (Drops::default(), Drops::default());
    drops.count(DropReason::Mtu);
    more.add(DropReason::Mtu, 2);
    more.count(DropReason::Vcrc);
    drops.merge(&more);
    let counts = [DropReason::Mtu, DropReason::Vcrc].map(|reason| drops.get(reason));
    assert_eq!((counts, drops.total()), ([3, 1], 4));
    let mut latency = LatencyReading::default();
    (0..2).for_each(|_| latency.count(Duration::from_ns(3)));
    assert_eq!((latency.buckets, latency.sum_ns), (vec![0, 0, 0, 2], 6));
    let mut span = Span::steady(5, 10);
    span.absorb(&Span::steady(1, 10));
    assert_eq!(span, Span { min: 1, max: 5, integral: 60 });
}

#[test]
fn reasons_have_distinct_names_in_table_order() {
    let names: std::collections::BTreeSet<_> =
        DropReason::ALL.iter().map(|reason| reason.name()).collect();
    assert_eq!(names.len(), DropReason::ALL.len());
    for (index, reason) in DropReason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, index);
    }
}

#[test]
fn each_fault_of_octets_has_its_drop_reason() {
    let check = Reason::Check { computed: 1, present: 2 };
    let (length, short) =
        (Reason::Length { declared: 1, present: 2 }, Reason::Short { needed: 1, present: 0 });
    let (version, illegal) = (Reason::Version(7), Reason::Illegal("for a test"));
    for (layer, fault, reason) in [
        ("LPCRC", check, DropReason::Lpcrc),
        ("FCP", short, DropReason::LinkPacket),
        ("MAC control", illegal, DropReason::MacControlTag),
        ("MAC control", short, DropReason::MacControlLength),
        ("PAUSE", short, DropReason::MacControlLength),
        ("PFC", short, DropReason::MacControlLength),
        ("IPv4", check, DropReason::Checksum),
        ("UDP", check, DropReason::Checksum),
        ("VCRC", check, DropReason::Vcrc),
        ("ICRC", check, DropReason::Icrc),
        ("LRH", length, DropReason::PacketLength),
        ("LRH", version, DropReason::LinkVersion),
        ("BTH", version, DropReason::TransportVersion),
        ("GRH", version, DropReason::GlobalHeader),
        ("GRH", illegal, DropReason::GlobalHeader),
        ("LRH", short, DropReason::Malformed),
    ] {
        assert_eq!(ParseError::new(layer, 0, fault).drop_reason(), reason, "{layer}: {fault}");
    }
}
