//! Arrival rates, receivers and limits; polling more often changes nothing.

use super::*;
use crate::config::{ClassConfig, CnpBody, Encapsulation, Operation, QueuePairOrder, Transport};
use proto::congestion::SchemeConfig;
use proto::ids::ServiceLevel;
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::units::{BitRate, Bytes};
use std::collections::BTreeMap;

fn item(arrivals: Arrivals) -> TrafficConfig {
    TrafficConfig {
        name: "cold".to_owned(),
        item: 0,
        class: 0,
        to: Target::Uniform,
        arrivals,
        interval: Duration::from_ps(2_500),
        slot: Duration::from_ps(1_000),
        size: Bytes::new(100),
        start: Instant::from_ps(1_000_000),
        stop: Instant::from_ps(101_000_000),
        messages: 0,
    }
}

fn workload(traffic: Vec<TrafficConfig>) -> Workload {
    Workload::new(&NicConfig {
        host: None,
        management: None,
        groups: Vec::new(),
        name: "h3".to_owned(),
        seed: 11,
        lid: Lid::new(3),
        qp_order: QueuePairOrder::Posting,
        ack_every: 1,
        ack_delay: Duration::ZERO,
        ack_timeout: Duration::ZERO,
        retry_count: 7,
        rnr_retry: 7,
        rnr_timer: Duration::ZERO,
        receive_depth: 0,
        receive_refill: Duration::ZERO,
        send_queue_max: None,
        wire: Encapsulation::Infiniband,
        cnp_body: CnpBody::Reserved16,
        sl2vl: vec![0; 16],
        scheme: SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() },
        link: LinkConfig {
            rate: BitRate::gbps(8),
            mtu: Bytes::new(2048),
            buffer: Bytes::new(76_032),
            control: FlowControlConfig::Credit(CreditConfig {
                data_lanes: 1,
                ..CreditConfig::default()
            }),
        },
        adapters: (1..=5).map(Lid::new).collect(),
        classes: vec![ClassConfig {
            transport: Transport::Rc,
            operation: Operation::Send,
            service_level: ServiceLevel::default(),
        }],
        traffic,
    })
}

/// All actions up to the end, polled every `step` picoseconds.
fn actions(traffic: Vec<TrafficConfig>, step: u64) -> Vec<WorkloadAction> {
    let mut workload = workload(traffic);
    let mut actions = Vec::new();
    for now in (0..=110_000_000).step_by(step as usize) {
        while let Some(action) = workload.poll_action(Instant::from_ps(now)) {
            actions.push(action);
        }
    }
    actions
}

fn requests(actions: &[WorkloadAction]) -> Vec<WorkRequest> {
    actions
        .iter()
        .filter_map(|action| match action {
            WorkloadAction::Post(request) => Some(*request),
            WorkloadAction::Stop { .. } => None,
        })
        .collect()
}

fn started(to: Lid, at: Instant) -> MessageStarted {
    MessageStarted { item: 0, to, at }
}

#[test]
fn mean_rates_are_as_configured_between_start_and_stop() {
    // 100 µs at one message per 2.5 ns: 40 000 expected. The standard deviation is 200 (Poisson) or 155
    // (Bernoulli).
    for (arrivals, tolerance) in
        [(Arrivals::Poisson, 600), (Arrivals::Bernoulli, 465), (Arrivals::Paced, 0)]
    {
        let actions = actions(vec![item(arrivals)], 1_000_000);
        let posted = requests(&actions);
        assert!(posted.len().abs_diff(40_000) <= tolerance, "{arrivals:?} {}", posted.len());
        assert!(posted.first().unwrap().at >= Instant::from_ps(1_000_000));
        assert!(posted.windows(2).all(|two| two[0].at <= two[1].at));
        let end = Instant::from_ps(101_000_000);
        assert!(posted.last().unwrap().at < end);
        assert_eq!(actions.last(), Some(&WorkloadAction::Stop { item: 0, at: end }));
        assert!(posted.iter().enumerate().all(|(n, request)| request.number == n as u32));
    }
}

#[test]
fn bernoulli_arrivals_keep_to_slots_and_paced_ones_to_the_interval() {
    let slots = requests(&actions(vec![item(Arrivals::Bernoulli)], 1_000_000));
    assert!(slots.iter().all(|request| request.at.as_ps() % 1_000 == 0));
    assert!(slots.windows(2).all(|two| two[0].at < two[1].at), "at most one message per slot");
    let paced = requests(&actions(vec![item(Arrivals::Paced)], 1_000_000));
    assert_eq!(paced[0].at, Instant::from_ps(1_000_000));
    assert!(paced.windows(2).all(|two| two[1].at.since(two[0].at).as_ps() == 2_500));
}

#[test]
fn uniform_targets_are_all_others_equally_often() {
    let mut count = BTreeMap::new();
    for request in requests(&actions(vec![item(Arrivals::Poisson)], 1_000_000)) {
        *count.entry(request.to.get()).or_insert(0u32) += 1;
    }
    assert_eq!(count.keys().copied().collect::<Vec<_>>(), [1, 2, 4, 5]);
    assert!(count.values().all(|n| n.abs_diff(10_000) < 400), "{count:?}");
}

#[test]
fn neither_frequent_polling_nor_another_item_changes_an_item() {
    let alone = actions(vec![item(Arrivals::Poisson)], 1_000_000);
    assert_eq!(alone, actions(vec![item(Arrivals::Poisson)], 333));
    let other = TrafficConfig { name: "hot".to_owned(), ..item(Arrivals::Bernoulli) };
    let both = actions(vec![item(Arrivals::Poisson), other], 1_000_000);
    let first: Vec<WorkloadAction> = both
        .into_iter()
        .filter(|action| match action {
            WorkloadAction::Post(request) => request.item == 0,
            WorkloadAction::Stop { item, .. } => *item == 0,
        })
        .collect();
    assert_eq!(first, alone);
}

#[test]
fn a_limit_ends_the_messages_and_not_the_item() {
    let limited = TrafficConfig { messages: 3, ..item(Arrivals::Paced) };
    let actions = actions(vec![limited], 1_000_000);
    assert_eq!(requests(&actions).len(), 3);
    assert!(matches!(actions[3], WorkloadAction::Stop { .. }));
}

#[test]
fn a_backlog_supplies_each_target_and_refills_until_it_stops() {
    let mut workload = workload(vec![item(Arrivals::Backlog)]);
    assert_eq!(workload.next_action_at(VirtualLane::ZERO), Instant::from_ps(1_000_000));
    let now = Instant::from_ps(1_000_000);
    let mut supplied = Vec::new();
    while let Some(WorkloadAction::Post(request)) = workload.poll_action(now) {
        supplied.push(request.to.get());
    }
    assert_eq!(supplied, [1, 2, 4, 5]);
    let refill = workload.on_started(&started(Lid::new(4), now)).unwrap();
    assert_eq!((refill.to, refill.number, refill.at), (Lid::new(4), 4, now));
    let end = Instant::from_ps(101_000_000);
    assert_eq!(workload.on_started(&started(Lid::new(4), end)), None);
    assert_eq!(workload.poll_action(end), Some(WorkloadAction::Stop { item: 0, at: end }));
    assert_eq!(workload.on_started(&started(Lid::new(4), now)), None);
}

#[test]
fn a_suspended_item_posts_nothing_and_resumes_at_its_rate() {
    let mut workload = workload(vec![item(Arrivals::Paced)]);
    let at = |ns: u64| Instant::from_ps(ns * 1_000);
    let posted = |workload: &mut Workload, now| {
        std::iter::from_fn(|| workload.poll_action(now))
            .filter(|a| matches!(a, WorkloadAction::Post(_)))
            .count()
    };
    assert!(!workload.has(Some("hot")) && workload.has(Some("cold")) && workload.has(None));
    assert!(workload.let_post(Some("hot"), false, at(0)).is_empty());
    let before = posted(&mut workload, at(2_000));
    assert!(before > 0);
    assert_eq!(workload.let_post(None, false, at(2_000)), [0]);
    assert!(workload.let_post(None, false, at(2_000)).is_empty(), "the item is already suspended");
    assert_eq!(posted(&mut workload, at(50_000)), 0);
    assert_eq!(workload.let_post(Some("cold"), true, at(50_000)), [0]);
    // The same rate as before. The earlier interval included both of its ends.
    assert_eq!(posted(&mut workload, at(51_000)), before - 1);
}

#[test]
fn a_resumed_backlog_supplies_every_receiver_again() {
    let mut workload = workload(vec![item(Arrivals::Backlog)]);
    let at = |ns: u64| Instant::from_ps(ns * 1_000);
    let first: Vec<_> = std::iter::from_fn(|| workload.poll_action(at(2_000))).collect();
    assert_eq!(first.len(), 4, "one message per receiver");
    workload.let_post(None, false, at(2_000));
    assert_eq!(workload.on_started(&started(Lid::new(1), at(2_100))), None);
    assert_eq!(workload.poll_action(at(3_000)), None);
    workload.let_post(None, true, at(4_000));
    let again: Vec<_> = std::iter::from_fn(|| workload.poll_action(at(4_000))).collect();
    assert_eq!(again.len(), 4);
    assert!(workload.on_started(&started(Lid::new(1), at(4_100))).is_some());
}
