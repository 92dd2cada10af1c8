//! A fabric under a subnet manager on the virtual clock: sweep, Initialize, Armed, Active, data; and what a Set moves.
//!
//! ```text
//!  h1, h2 ── s1 ══ s2 ── h3, h4      two trunks; the manager is beside h1
//! ```

use bytes::BytesMut;
use emulation::observer::{Observer, Passage};
use emulation::simulator::Simulator;
use emulation::wiring::{
    Action, End, FrameFilter, Impairment, LinkWiring, NodeKind as Kind, NodeWiring, Wiring,
};
use management::attribute::{performance, subnet};
use management::datagram::{self, HOP_POINTER, method};
use management::{Datagram, ManagementConfig, packet};
use nicd::config::{
    Arrivals, ClassConfig, CnpBody, Encapsulation, NicConfig, Operation, QueuePairOrder, Target,
    TrafficConfig, Transport,
};
use nicd::nic::Nic;
use proto::congestion::SchemeConfig;
use proto::counters::{DeviceReading, DropReason};
use proto::device::Device;
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber, ServiceLevel};
use proto::link::{CreditConfig, FlowControlConfig, LinkConfig};
use proto::random::Random;
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::infiniband::LrhView;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};
use switchd::config::{MemoryConfig, PortConfig, RoutingConfig, SwitchConfig};
use switchd::switch::Switch;
use testbed::subnet_manager::{Beside, Manager, Phase};

#[path = "managed/multicast.rs"]
mod multicast;
#[path = "managed/partitions.rs"]
mod partitions;
#[path = "managed/performance.rs"]
mod performance_attributes;

/// Adapters; the switches follow.
const ADAPTERS: usize = 4;
/// Ports of a switch: two adapters, two trunks.
const PORTS: usize = 4;
const TRUNKS: [u8; 2] = [3, 4];
const DELAY: Duration = Duration::from_ns(100);

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

fn guid(node: usize) -> u64 {
    0x0002_c903_0000_0000 + (node as u64) * 0x100
}

fn lid(node: usize) -> Lid {
    Lid::new(node as u16 + 1)
}

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).expect("a port")
}

fn link() -> LinkConfig {
    LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(2 * 36 * 2112),
        control: FlowControlConfig::Credit(CreditConfig { data_lanes: 2, ..Default::default() }),
    }
}

fn management(node: usize) -> Option<ManagementConfig> {
    Some(ManagementConfig { guid: guid(node) })
}

fn scheme() -> SchemeConfig {
    SchemeConfig { kind: "none".to_owned(), params: toml::Table::new() }
}

/// `messages` messages of `size` octets from `from` to `to` on class `class`, one every `gap`.
#[derive(Clone, Copy)]
struct Stream {
    from: usize,
    to: usize,
    class: u8,
    messages: u64,
    gap: Duration,
    start: Instant,
}

impl Stream {
    fn new(from: usize, to: usize, messages: u64) -> Stream {
        let (class, gap, start) = (0, Duration::from_us(5), us(1_000));
        Stream { from, to, class, messages, gap, start }
    }

    fn config(&self) -> TrafficConfig {
        TrafficConfig {
            name: format!("{}-{}", self.from, self.to),
            item: 0,
            class: self.class,
            to: Target::Lids(vec![lid(self.to)]),
            arrivals: Arrivals::Paced,
            interval: self.gap,
            slot: Duration::from_ps(1),
            size: Bytes::new(2048),
            start: self.start,
            stop: Instant::NEVER,
            messages: self.messages,
        }
    }
}

fn nic(node: usize, streams: &[Stream]) -> Nic {
    let class = |transport, level| ClassConfig {
        transport,
        operation: Operation::Send,
        service_level: ServiceLevel::truncate(level),
    };
    let config = NicConfig {
        name: format!("h{}", node + 1),
        seed: 7,
        lid: lid(node),
        qp_order: QueuePairOrder::Posting,
        ack_every: 1,
        ack_delay: Duration::from_us(5),
        ack_timeout: Duration::from_us(500),
        retry_count: 7,
        rnr_retry: 7,
        rnr_timer: Duration::from_us(10),
        receive_depth: 0,
        receive_refill: Duration::ZERO,
        send_queue_max: None,
        wire: Encapsulation::Infiniband,
        cnp_body: CnpBody::Reserved16,
        sl2vl: vec![0; 16],
        scheme: scheme(),
        link: link(),
        adapters: (0..ADAPTERS).map(lid).collect(),
        classes: vec![class(Transport::Rc, 0), class(Transport::Rc, 1), class(Transport::Ud, 0)],
        traffic: streams.iter().filter(|stream| stream.from == node).map(Stream::config).collect(),
        host: None,
        management: management(node),
        groups: multicast::groups(node, streams),
    };
    Nic::new(config).expect("a valid NIC")
}

fn switch(node: usize) -> Switch {
    let leads_to_adapter = |index: usize| index < 2;
    let port = |index| PortConfig::plain(leads_to_adapter(index), link(), DELAY);
    let config = SwitchConfig {
        name: format!("s{}", node - ADAPTERS + 1),
        seed: 7,
        lid: Lid::new(999),
        memory: MemoryConfig::default(),
        sl2vl: vec![0; 16],
        scheme: scheme(),
        ports: (0..PORTS).map(port).collect(),
        routes: Vec::new(),
        multicast: Vec::new(),
        routing: RoutingConfig::default(),
        watchdog: None,
        management: management(node),
    };
    Switch::new(config).expect("a valid switch")
}

fn wiring() -> Wiring {
    let node = |index: usize| NodeWiring {
        name: format!("n{index}"),
        kind: if index < ADAPTERS { Kind::Nic } else { Kind::Switch },
        ports: if index < ADAPTERS { 1 } else { PORTS as u8 },
        level: u8::from(index >= ADAPTERS),
    };
    let end = |node, number| End { node, port: port(number) };
    let cable = |(a, b)| LinkWiring { a, b, delay: DELAY, frame_time: Duration::from_us(2) };
    let (s1, s2) = (ADAPTERS, ADAPTERS + 1);
    let ends = [
        (end(0, 1), end(s1, 1)),
        (end(1, 1), end(s1, 2)),
        (end(2, 1), end(s2, 1)),
        (end(3, 1), end(s2, 2)),
        (end(s1, 3), end(s2, 3)),
        (end(s1, 4), end(s2, 4)),
    ];
    Wiring {
        nodes: (0..ADAPTERS + 2).map(node).collect(),
        links: ends.into_iter().map(cable).collect(),
        ..Wiring::default()
    }
}

/// The state of the fabric after a run.
struct Run {
    readings: Vec<DeviceReading>,
    manager: Arc<Mutex<Manager>>,
    /// Management packets as they arrived: node, port, addresses and datagram.
    mads: Vec<(usize, u8, packet::Addresses, Datagram)>,
    /// LIDs of other packets: sender and receiver.
    ends: BTreeSet<(Lid, Lid)>,
}

/// Keeps the management packets that arrive anywhere, and the LIDs of others: sender and receiver.
#[derive(Default)]
struct Tap(Vec<(usize, u8, packet::Addresses, Datagram)>, BTreeSet<(Lid, Lid)>);

impl Observer for Tap {
    fn wants_frames(&self, _: usize, _: PortNumber) -> bool {
        true
    }

    fn frame(&mut self, frame: &Frame, passage: &Passage) {
        let is_packet = frame.kind == FrameKind::Infiniband && passage.direction == Direction::Rx;
        let lids = || LrhView::new(&frame.octets).map(|lrh| (lrh.slid(), lrh.dlid()));
        match is_packet.then(|| packet::parse(&frame.octets)) {
            Some(Ok((addresses, mad))) => {
                self.0.push((passage.device, passage.port.get(), addresses, mad));
            }
            Some(Err(_)) => self.1.extend(lids()),
            None => {}
        }
    }
}

/// Runs the fabric with these streams until `stop`. `script` adds deeds to the manager, which sweeps from 20 us on.
fn run(streams: &[Stream], stop: Instant, script: impl FnOnce(Beside<Nic>) -> Beside<Nic>) -> Run {
    run_on(&wiring(), &[], streams, stop, script)
}

/// The same on other cables, and with these frames from outside at their ports.
fn run_on(
    wiring: &Wiring,
    fed: &[(End, Instant, Frame)],
    streams: &[Stream],
    stop: Instant,
    script: impl FnOnce(Beside<Nic>) -> Beside<Nic>,
) -> Run {
    let plan = (0..ADAPTERS).map(|node| (guid(node), lid(node)));
    let beside = script(Beside::new(nic(0, streams), Manager::new(plan, us(20))));
    let manager = beside.manager();
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(beside)];
    devices.extend((1..ADAPTERS).map(|node| Box::new(nic(node, streams)) as Box<dyn Device>));
    devices.extend((0..2).map(|index| Box::new(switch(ADAPTERS + index)) as Box<dyn Device>));
    let mut simulator = Simulator::new(wiring, devices, 7);
    for (end, at, frame) in fed {
        simulator.inject(*end, frame.clone(), *at);
    }
    let mut tap = Tap::default();
    let tally = simulator.run(stop, &mut tap, |_| ControlFlow::Continue(()));
    let read = |device: &mut Box<dyn Device>| {
        let mut reading = DeviceReading::default();
        device.read(stop, &mut reading);
        reading
    };
    let readings: Vec<_> = simulator.devices().iter_mut().map(read).collect();
    let run = Run { readings, manager, mads: tap.0, ends: tap.1 };
    let sum = |part: fn(&DeviceReading) -> u64| run.readings.iter().map(part).sum::<u64>();
    let ended = sum(|it| it.balance.delivered)
        + sum(|it| it.balance.buffered)
        + tally.on_cables
        + tally.injected.lost.end_to_end;
    let lost: u64 = DropReason::ALL
        .iter()
        .filter(|reason| reason.is_end_to_end())
        .map(|reason| run.drops(*reason))
        .sum();
    assert_eq!(
        tally.fed + sum(|it| it.balance.injected),
        ended + lost,
        "every frame is accounted for"
    );
    run
}

impl Run {
    fn manager(&self) -> MutexGuard<'_, Manager> {
        self.manager.lock().expect("the run is over")
    }

    /// Data frames that port `number` of `node` sent.
    fn sent(&self, node: usize, number: u8) -> u64 {
        let lanes = &self.readings[node].ports[usize::from(number) - 1].lanes;
        lanes.iter().map(|lane| lane.counters.tx_frames).sum()
    }

    /// The same for one lane.
    fn sent_on(&self, node: usize, number: u8, lane: usize) -> u64 {
        self.readings[node].ports[usize::from(number) - 1].lanes[lane].counters.tx_frames
    }

    /// Datagrams of QP1 that arrived at port `number` of `node`.
    fn general(&self, node: usize, number: u8) -> u64 {
        let is_one = |(at, port, addresses, _): &&(usize, u8, packet::Addresses, Datagram)| {
            (*at, *port) == (node, number) && addresses.lane.get() != 15
        };
        self.mads.iter().filter(is_one).count() as u64
    }

    /// Messages that adapter `node` received.
    fn received(&self, node: usize) -> u64 {
        self.readings[node].receptions.iter().map(|flow| flow.messages).sum()
    }

    fn drops(&self, reason: DropReason) -> u64 {
        let ports = self.readings.iter().flat_map(|reading| &reading.ports);
        ports.map(|port| port.drops.get(reason)).sum()
    }

    fn all_drops(&self) -> u64 {
        let ports = self.readings.iter().flat_map(|reading| &reading.ports);
        ports.map(|port| port.drops.total()).sum()
    }
}

const S1: usize = ADAPTERS;
const S2: usize = ADAPTERS + 1;
/// The way from the manager to each switch.
const TO_S1: &[u8] = &[1];

#[test]
fn without_a_manager_no_data_moves() {
    let never = |beside: Beside<Nic>| beside;
    let stream = Stream { start: Instant::ZERO, ..Stream::new(1, 3, 10) };
    let run = run(&[stream], us(19), never);
    assert_eq!(run.sent(1, 1), 0);
    assert_eq!((run.mads.len(), run.all_drops()), (0, 0));
}

#[test]
fn a_sweep_brings_up_the_fabric_and_data_flow_on_its_routes() {
    let streams = [Stream::new(1, 3, 50), Stream::new(2, 0, 50), Stream::new(3, 2, 50)];
    let run = run(&streams, us(3_000), |beside| beside);
    let manager = run.manager();
    assert_eq!((manager.phase, manager.lost), (Phase::Done, 0));
    assert!(manager.done[0] < us(1_000), "{:?}", manager.done);
    assert_eq!(manager.fabric.nodes.len(), ADAPTERS + 2);
    assert_eq!((run.received(3), run.received(0), run.received(2)), (50, 50, 50));
    assert_eq!(run.all_drops(), 0, "links come up without a loss");
    // LIDs share the trunks: LID 4 by the first, LID 1 by the second.
    for (from, to, at) in [(1, 3, S1), (2, 0, S2)] {
        let table = &manager.fabric;
        let index = table.nodes.iter().position(|node| node.guid == guid(at)).expect("a switch");
        let trunk = table.routes(index, 0)[&lid(to)];
        assert!(TRUNKS.contains(&trunk), "{from} to {to}");
        // NICs ask for paths, and the manager answers. Both ends of a trunk have the same number.
        let far = S1 + S2 - at;
        let expected = 50 + run.general(far, trunk);
        assert_eq!(run.sent(at, trunk), expected, "{from} to {to} by trunk {trunk}");
    }
}

#[test]
fn datagrams_travel_hop_by_hop_on_vl15_with_their_pointer_moved() {
    let run = run(&[], us(3_000), |beside| beside);
    assert!(run.mads.iter().all(|(_, _, addresses, _)| addresses.lane.get() == 15));
    // A request for h4 and its answer: h1, s1, s2, h4 and back.
    let is_ours = |mad: &Datagram| {
        let to_node = mad.attribute() == subnet::node_info::ATTRIBUTE.id;
        to_node && mad.get(&datagram::HOP_COUNT) == 3 && mad.modifier() == 0
    };
    let first = run.mads.iter().find(|(node, .., mad)| *node == 3 && is_ours(mad));
    let transaction = first.expect("a request reaches h4").3.get(&datagram::TRANSACTION);
    let hops: Vec<(usize, u64, u64)> = run
        .mads
        .iter()
        .filter(|(.., mad)| mad.get(&datagram::TRANSACTION) == transaction)
        .map(|(node, _, _, mad)| (*node, mad.get(&datagram::DIRECTION), mad.get(&HOP_POINTER)))
        .collect();
    assert_eq!(hops, [(S1, 0, 1), (S2, 0, 2), (3, 0, 3), (S2, 1, 3), (S1, 1, 2), (0, 1, 1)]);
}

#[test]
fn a_table_entry_moves_traffic_in_flight_and_loses_nothing() {
    let stream = Stream::new(1, 3, 400);
    let moved = |beside: Beside<Nic>| {
        beside.at(us(1_500), |manager| {
            let index = manager.fabric.nodes.iter().position(|node| node.guid == guid(S1));
            let table = manager.fabric.routes(index.expect("s1 was found"), 0);
            let mut block: Vec<u8> =
                (0..64).map(|lid| table.get(&Lid::new(lid)).copied().unwrap_or(255)).collect();
            let other = TRUNKS[0] + TRUNKS[1] - block[usize::from(lid(3).get())];
            block[usize::from(lid(3).get())] = other;
            manager.ask_along(TO_S1, method::SET, 0x19, 0, &block);
        })
    };
    let run = run(&[stream], us(4_000), moved);
    assert_eq!(run.manager().answers[0].status(), 0);
    assert_eq!((run.received(3), run.all_drops()), (400, 0));
    let trunks = TRUNKS.map(|trunk| run.sent(S1, trunk) - run.general(S2, trunk));
    assert_eq!(trunks.iter().sum::<u64>(), 400);
    assert!(trunks.iter().all(|frames| *frames > 50), "{trunks:?}");
}

#[test]
fn a_disabled_trunk_is_reported_and_the_next_sweep_goes_around_it() {
    let streams = [Stream::new(1, 3, 600), Stream::new(2, 0, 600)];
    let run = run(&streams, us(9_000), |beside| {
        beside.at(us(1_000), |manager| {
            let mut data = [0; 64];
            subnet::port_info::PHYS_STATE.set(&mut data, 3);
            manager.ask_along(TO_S1, method::SET, 0x15, TRUNKS[0].into(), &data);
        })
    });
    let manager = run.manager();
    assert_eq!(manager.answers[0].status(), 0);
    assert!(manager.count_traps(128) > 0);
    assert!(manager.done.len() >= 2, "{:?}", manager.done);
    assert_eq!((run.received(3), run.received(0)), (600, 600), "RC repairs what the trunk lost");
    let found = manager.fabric.node(guid(S1)).expect("s1 was found");
    assert!(!found.peers.contains_key(&TRUNKS[0]) && found.peers.contains_key(&TRUNKS[1]));
}

#[test]
fn lanes_and_weights_that_are_set_rule_the_output() {
    // Two classes share the link to h4; each alone would fill it.
    let flood = |from, class| Stream {
        class,
        gap: Duration::from_ns(2_100),
        ..Stream::new(from, 3, 1_000)
    };
    let streams = [flood(2, 0), flood(1, 1)];
    let run = run(&streams, us(2_400), |beside| {
        beside.at(us(990), |manager| {
            let to_s2 = manager.fabric.node(guid(S2)).expect("s2 was found").path.clone();
            for input in 1..=PORTS as u8 {
                let mut lanes = [0; 16];
                lanes[1] = 1;
                manager.set_lanes(&to_s2, (input, 2), lanes);
            }
            manager.set_weights(&to_s2, 2, &[(0, 64), (1, 192)]);
        })
    });
    let lanes = [0, 1].map(|lane| run.sent_on(S2, 2, lane) as f64);
    let share = lanes[1] / (lanes[0] + lanes[1]);
    assert!((0.70..0.80).contains(&share), "three of four frames are on lane 1: {lanes:?}");
    assert_eq!(run.all_drops(), 0);
}

#[test]
fn performance_counters_are_those_of_the_device() {
    let ask = |beside: Beside<Nic>| {
        beside.at(us(2_500), |manager| {
            for number in TRUNKS {
                let class = datagram::PERFORMANCE;
                let mut request = Datagram::request(class, method::GET, 0x12, 0, 0);
                request.data_mut()[1] = number;
                let s1 = manager.fabric.node(guid(S1)).expect("s1 was found").lid;
                manager.ask(s1, request);
            }
        })
    };
    let run = run(&[Stream::new(1, 3, 100)], us(3_000), ask);
    let manager = run.manager();
    assert_eq!(manager.answers.len(), 2);
    for (answer, number) in manager.answers.iter().zip(TRUNKS) {
        assert_eq!(answer.status(), 0);
        let data = answer.data();
        let read = |field: management::attribute::Field| field.get(data);
        use performance::port_counters::*;
        // 2048 octets of payload, LRH, BTH and ICRC are 518 words. The rest are acknowledgements of 6, datagrams of 72.
        let data_frames = run.sent(S1, number) - run.general(S2, number);
        let is_before =
            |mad: &&(usize, u8, packet::Addresses, Datagram)| (mad.0, mad.1) == (S2, number);
        let mads = run.mads.iter().filter(is_before).count() as u64;
        let acks = read(XMIT_PACKETS) - data_frames - mads;
        assert_eq!(acks, 0, "acknowledgements go the other way on trunk {number}");
        assert_eq!(read(XMIT_DATA), data_frames * 518 + mads * 72, "trunk {number}");
        assert_eq!(read(PORT_SELECT), u64::from(number));
    }
}

#[test]
fn a_control_table_that_is_set_throttles_the_senders_of_a_hot_spot() {
    use management::attribute::congestion as cc;
    let flood =
        |from| Stream { gap: Duration::from_ns(2_100), messages: 2_000, ..Stream::new(from, 3, 0) };
    let streams = [flood(0), flood(1), flood(2)];
    let set = |attribute, modifier| {
        Datagram::request(datagram::CONGESTION, method::SET, attribute, modifier, 0)
    };
    let configure = move |manager: &mut Manager| {
        use cc::ca_congestion_setting as adapter;
        use cc::congestion_control_table as table;
        use cc::switch_congestion_setting as marking;
        for node in manager.fabric.nodes.clone() {
            if node.is_switch {
                let mut request = set(0x14, 0);
                marking::CONTROL_MAP.set(request.data_mut(), 0x1f);
                marking::THRESHOLD.set(request.data_mut(), 15);
                manager.ask(node.lid, request);
                continue;
            }
            let mut request = set(0x16, 0);
            adapter::CONTROL_MAP.set(request.data_mut(), 1);
            adapter::CCTI_TIMER.set(request.data_mut(), 31);
            adapter::CCTI_INCREASE.set(request.data_mut(), 1);
            manager.ask(node.lid, request);
            for block in 0..2 {
                let mut request = set(0x17, block);
                table::CCTI_LIMIT.set(request.data_mut(), 127);
                for index in 0..64 {
                    let multiplier = (u64::from(block) * 64 + index as u64) * 2;
                    table::SHIFT.set_at(index, request.data_mut(), 3);
                    table::MULTIPLIER.set_at(index, request.data_mut(), multiplier);
                }
                manager.ask(node.lid, request);
            }
        }
    };
    let hot = run(&streams, us(4_000), |beside| beside);
    let cured = run(&streams, us(4_000), |beside| beside.at(us(990), configure));
    let answers = &cured.manager().answers;
    assert_eq!(answers.len(), 2 + 3 * ADAPTERS);
    assert!(answers.iter().all(|answer| answer.status() == 0));
    let index = |run: &Run| run.readings[1].flows.iter().map(|flow| flow.scalar).max();
    assert_eq!(index(&hot), Some(0), "nothing marks before it is told to");
    assert!(index(&cured) > Some(0), "CCTI of a sender has risen");
    let waited = |run: &Run| {
        let lanes = &run.readings[S1].ports[usize::from(TRUNKS[1]) - 1].lanes;
        let other = &run.readings[S1].ports[usize::from(TRUNKS[0]) - 1].lanes;
        lanes.iter().chain(other).map(|lane| lane.counters.hold_ps).sum::<u64>()
    };
    assert!(2 * waited(&cured) < waited(&hot), "PortXmitWait of the trunks falls by half");
}

#[test]
fn a_lossy_fabric_comes_up_because_the_manager_repeats_itself() {
    let from = End { node: S1, port: port(1) };
    let frames = FrameFilter::Kind(FrameKind::Infiniband);
    let lossy = Impairment { from, frames, action: Action::Lose, chance: (1, 4) };
    let wiring = Wiring { impairments: vec![lossy], ..wiring() };
    let stream = Stream { start: us(15_000), ..Stream::new(1, 3, 50) };
    let run = run_on(&wiring, &[], &[stream], us(20_000), |beside| beside);
    let manager = run.manager();
    assert_eq!((manager.fabric.nodes.len(), manager.lost), (ADAPTERS + 2, 0));
    assert!(manager.done.first().is_some_and(|at| *at < us(15_000)), "{:?}", manager.done);
    assert_eq!(run.received(3), 50);
}

/// Datagrams of random classes, methods, attributes, pointers and paths at random ports, on VL15. Without Set, since a
/// fabric without M_Key obeys any sender.
fn hostile(count: u64, with_set: bool) -> Vec<(End, Instant, Frame)> {
    const ATTRIBUTES: [u16; 14] =
        [1, 2, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1b, 0x20, 0xff90];
    const METHODS: [u8; 9] = [1, 3, 5, 6, 7, 0x12, 0x81, 0x85, method::SET];
    let methods = &METHODS[..METHODS.len() - usize::from(!with_set)];
    let mut random = Random::stream(11, "managed", "hostile");
    let mut below = move |n: usize| random.below(n as u64) as usize;
    let frame = |number| {
        let class = [0x01, 0x81, 0x81, 0x81, 0x04, 0x21][below(6)];
        let (method, attribute) = (methods[below(methods.len())], ATTRIBUTES[below(14)]);
        let modifier = if below(2) == 0 { below(6) } else { below(1 << 32) };
        let transaction = u64::MAX - number;
        let mut mad = Datagram::request(class, method, attribute, modifier as u32, transaction);
        mad.0[64..].iter_mut().for_each(|octet| *octet = below(6) as u8);
        mad.set(&datagram::DIRECTION, below(2) as u64);
        mad.set(&HOP_POINTER, below(6) as u64);
        mad.set(&datagram::HOP_COUNT, if below(9) == 0 { below(256) } else { below(5) } as u64);
        for field in [datagram::DR_SLID, datagram::DR_DLID] {
            mad.set(&field, [0xffff, 0xffff, 1, 4, 0xc001, 0][below(6)]);
        }
        let to = Lid::new([0xffff, 0xffff, 1, 2, 4, 100, 0xc001, 0][below(8)]);
        let mut octets = BytesMut::new();
        packet::emit(&packet::Addresses::subnet(Lid::new(2), to), &mad, &mut octets);
        let node = below(ADAPTERS + 2);
        let ports = if node < ADAPTERS { 1 } else { PORTS };
        let end = End { node, port: port(1 + below(ports) as u8) };
        let at = us(1_000) + Duration::from_us(2) * number;
        (end, at, Frame::unchecked(FrameKind::Infiniband, octets))
    };
    (0..count).map(frame).collect()
}

#[test]
fn hostile_datagrams_are_answered_dropped_or_passed_on_and_harm_no_data() {
    let frames = hostile(1_500, false);
    let streams = [Stream::new(1, 3, 400), Stream::new(2, 0, 400)];
    let run = run_on(&wiring(), &frames, &streams, us(6_000), |beside| beside);
    assert_eq!((run.received(3), run.received(0)), (400, 400));
    assert!(run.drops(DropReason::Management) > 100, "most of them lead nowhere");
    assert_eq!(run.manager().phase, Phase::Done);
    let of_management = [
        DropReason::Management,
        DropReason::NoRoute,
        DropReason::NoMulticastRoute,
        DropReason::LinkState,
        DropReason::NotForUs,
        DropReason::QueuePair,
        DropReason::Hairpin,
        DropReason::ManagementOverrun,
    ];
    let counted: u64 = of_management.iter().map(|reason| run.drops(*reason)).sum();
    assert_eq!(run.all_drops(), counted, "no data frame was dropped for another reason");
}

#[test]
fn hostile_sets_break_the_fabric_and_no_device() {
    let frames = hostile(3_000, true);
    let streams = [Stream::new(1, 3, 400), Stream::new(2, 0, 400)];
    let run = run_on(&wiring(), &frames, &streams, us(9_000), |beside| beside);
    assert!(run.drops(DropReason::Management) > 100);
}
