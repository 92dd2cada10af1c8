//! The agents of an adapter and of a switch with four ports, asked by datagrams.

use super::*;
use crate::agent::partitions::Checkpoint;
use crate::attribute::subnet::*;
use crate::attribute::{Field, congestion as cc, performance as pm};
use crate::datagram::{
    CC_KEY, CONGESTION, M_KEY, PERFORMANCE, SUBNET_DIRECTED, TRANSACTION, method,
};
use crate::partitions::BadPartition;
use proto::counters::{DropReason, PortReading};
use proto::ids::{QueuePairNumber, ServiceLevel, VirtualLane};
use proto::link::port::Traffic;
use proto::link::{CreditConfig, FlowControlConfig};
use proto::units::{BitRate, Bytes, Duration};

const GUID: u64 = 0x0002_c903_0000_1000;
/// The status of a value out of range.
const BAD: u16 = status::VALUE;

fn link() -> LinkConfig {
    let control = CreditConfig { data_lanes: 4, ..CreditConfig::default() };
    LinkConfig {
        rate: BitRate::gbps(8),
        mtu: Bytes::new(2048),
        buffer: Bytes::new(64 * 1024),
        control: FlowControlConfig::Credit(control),
    }
}

fn node(kind: NodeKind, ports: usize) -> Bench {
    let link = link();
    let links = vec![&link; ports];
    let config = ManagementConfig { guid: GUID };
    Bench { agents: Agents::new(kind, "leaf 1", &config, &links), traffic: Traffic::default() }
}

fn adapter() -> Bench {
    node(NodeKind::Adapter, 1)
}

fn switch() -> Bench {
    node(NodeKind::Switch, 4)
}

fn port(number: u8) -> PortNumber {
    PortNumber::new(number).expect("a port")
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

/// A node with one set of totals for all its ports.
struct Bench {
    agents: Agents,
    traffic: Traffic,
}

impl Bench {
    fn hand_in(&mut self, datagram: &mut Datagram, arrival: u8, now: Instant) -> Outcome {
        let totals = Totals::of(&PortReading::default(), &self.traffic, BitRate::gbps(8));
        self.agents.receive(datagram, arrival, false, &mut |_| totals, now)
    }

    /// The status and the data of the answer to a request.
    fn ask(&mut self, mut request: Datagram) -> (u16, Vec<u8>) {
        let before = request.clone();
        assert_eq!(self.hand_in(&mut request, 1, at(0)), Outcome::Answer, "{before:?}");
        for field in [TRANSACTION, datagram::ATTRIBUTE, datagram::MODIFIER] {
            assert_eq!(request.get(&field), before.get(&field), "{}", field.name);
        }
        assert_eq!(request.method(), method::GET_RESPONSE);
        (request.status(), request.data().to_vec())
    }

    fn get(&mut self, attribute: u16, modifier: u32) -> (u16, Vec<u8>) {
        self.ask(Datagram::request(SUBNET_DIRECTED, method::GET, attribute, modifier, 1))
    }

    fn value(&mut self, attribute: u16, modifier: u32, field: Field) -> u64 {
        let (status, data) = self.get(attribute, modifier);
        assert_eq!(status, 0);
        field.get(&data)
    }

    /// Sets these fields; the others keep what a Get shows.
    fn set(&mut self, attribute: u16, modifier: u32, values: &[(Field, u64)]) -> u16 {
        let (_, mut data) = self.get(attribute, modifier);
        if attribute == port_info::ATTRIBUTE.id {
            port_info::PORT_STATE.set(&mut data, 0);
            port_info::PHYS_STATE.set(&mut data, 0);
        }
        values.iter().for_each(|(field, value)| field.set(&mut data, *value));
        self.put(attribute, modifier, &data)
    }

    fn put(&mut self, attribute: u16, modifier: u32, data: &[u8]) -> u16 {
        let mut request = Datagram::request(SUBNET_DIRECTED, method::SET, attribute, modifier, 2);
        request.data_mut()[..data.len()].copy_from_slice(data);
        let (status, shown) = self.ask(request);
        assert_eq!(shown, self.get(attribute, modifier).1, "a Set answers what then stands");
        status
    }

    fn state(&mut self, number: u32, state: u64) -> u16 {
        self.set(0x15, number, &[(port_info::PORT_STATE, state)])
    }

    fn physical(&mut self, number: u32, state: u64) -> u16 {
        self.set(0x15, number, &[(port_info::PHYS_STATE, state)])
    }

    fn observe(&mut self, number: u8, is_up: bool, state: LinkState, restarts: u64) {
        let seen = Observation { is_up, state, restarts };
        self.agents.observe(port(number), seen, at(1));
    }

    fn changes(&mut self) -> Vec<Change> {
        std::iter::from_fn(|| self.agents.poll_change()).collect()
    }

    /// Gives the node LID 7 and the manager LID 3.
    fn addressed(mut self) -> Bench {
        let home = [(port_info::LID, 7), (port_info::MASTER_SM_LID, 3)];
        assert_eq!(self.set(0x15, 0, &home), 0);
        self.changes();
        self
    }

    /// Port `number` has a peer, and both ends were permitted to be active.
    fn active(mut self, number: u8) -> Bench {
        self.observe(number, true, LinkState::Initialize, 0);
        assert_eq!(self.state(number.into(), 3), 0);
        assert_eq!(self.state(number.into(), 4), 0);
        self.observe(number, true, LinkState::Active, 0);
        self.changes();
        self
    }

    fn port_state(&self, number: u8) -> PortState {
        self.agents.port_state(number).expect("a port of the node")
    }
}

#[test]
fn a_node_says_what_it_is() {
    let (mut adapter, mut switch) = (adapter(), switch());
    let info = |bench: &mut Bench, field| bench.value(0x11, 0, field);
    assert_eq!(info(&mut adapter, node_info::NODE_TYPE), 1);
    assert_eq!(info(&mut adapter, node_info::PORT_GUID), GUID + 1);
    assert_eq!(info(&mut switch, node_info::NODE_TYPE), 2);
    assert_eq!(info(&mut switch, node_info::PORT_GUID), GUID);
    assert_eq!(info(&mut switch, node_info::NUM_PORTS), 4);
    assert_eq!(info(&mut switch, node_info::LOCAL_PORT), 1);
    assert_eq!(&switch.get(0x10, 0).1[..7], b"leaf 1\0");
    assert_eq!(adapter.get(0x12, 0).0, status::ATTRIBUTE);
    assert_eq!(switch.value(0x15, 1, port_info::VL_CAP), 3);
    assert_eq!(switch.value(0x15, 1, port_info::MTU_CAP), 4);
    assert_eq!(switch.value(0x15, 0, port_info::PORT_STATE), 4);
}

#[test]
fn a_port_goes_down_initialize_armed_active() {
    let mut bench = switch();
    assert_eq!(bench.port_state(2), PortState::Down);
    bench.observe(2, true, LinkState::Initialize, 0);
    assert_eq!(bench.port_state(2), PortState::Initialize);
    assert_eq!(bench.state(2, 3), 0);
    assert_eq!(bench.state(2, 4), 0);
    let permitted = [LinkState::Arm, LinkState::Active].map(|state| Change::Link(port(2), state));
    assert_eq!(bench.changes(), permitted);
    bench.observe(2, false, LinkState::Initialize, 1);
    assert_eq!(bench.port_state(2), PortState::Down);
}

/// Every state, every state and physical state that a Set may ask for.
#[test]
fn only_the_legal_transitions_are_taken() {
    for from in [PortState::Down, PortState::Initialize, PortState::Armed, PortState::Active] {
        for asked in 0..=15 {
            let mut bench = switch();
            bench.observe(1, from > PortState::Down, LinkState::Initialize, 0);
            (3..=from as u64).for_each(|state| assert_eq!(bench.state(1, state), 0));
            let legal = match asked {
                0 | 1 => true,
                3 => matches!(from, PortState::Initialize | PortState::Armed),
                4 => matches!(from, PortState::Armed | PortState::Active),
                _ => false,
            };
            let after = match asked {
                1 => PortState::Down,
                3 | 4 if legal => PortState::from_code(asked),
                _ => from,
            };
            assert_eq!(bench.state(1, asked), if legal { 0 } else { BAD }, "{from:?} to {asked}");
            assert_eq!(bench.port_state(1), after, "{from:?} to {asked}");
        }
    }
    for physical in 0..=15 {
        let status = switch().active(1).physical(1, physical);
        assert_eq!(status, if matches!(physical, 0 | 2 | 3) { 0 } else { BAD }, "{physical}");
    }
    let both = [(port_info::PORT_STATE, 4), (port_info::PHYS_STATE, 2)];
    assert_eq!(switch().active(1).set(0x15, 1, &both), BAD);
}

#[test]
fn a_disabled_port_stays_down_until_it_is_enabled() {
    let mut bench = switch().active(1);
    assert_eq!(bench.physical(1, 3), 0);
    assert_eq!(bench.changes(), [Change::Link(port(1), LinkState::Down)]);
    bench.observe(1, true, LinkState::Down, 0);
    assert_eq!(bench.port_state(1), PortState::Down);
    assert_eq!(bench.value(0x15, 1, port_info::PHYS_STATE), 3);
    assert_eq!(bench.physical(1, 2), 0);
    let retrain =
        [LinkState::Down, LinkState::Initialize].map(|state| Change::Link(port(1), state));
    assert_eq!(bench.changes(), retrain);
    bench.observe(1, true, LinkState::Initialize, 0);
    assert_eq!(bench.port_state(1), PortState::Initialize);
}

#[test]
fn a_refused_value_keeps_its_field_and_the_others_are_taken() {
    let mut bench = adapter().addressed();
    let refused = [
        (port_info::LID, 0),
        (port_info::LID, 0xc000),
        (port_info::MASTER_SM_LID, 0),
        (port_info::LINK_WIDTH_ENABLED, 1),
        (port_info::LINK_SPEED_ENABLED, 8),
        (port_info::NEIGHBOR_MTU, 5),
        (port_info::OPERATIONAL_VLS, 4),
        (port_info::LINK_DOWN_DEFAULT, 3),
    ];
    for (priority, (field, value)) in refused.into_iter().enumerate() {
        let before = bench.value(0x15, 0, field);
        let level = priority as u64 + 1;
        let status = bench.set(0x15, 0, &[(field, value), (port_info::MASTER_SM_SL, level)]);
        assert_eq!(status, BAD, "{} = {value}", field.name);
        assert_eq!(bench.value(0x15, 0, field), before, "{}", field.name);
        assert_eq!(bench.value(0x15, 0, port_info::MASTER_SM_SL), level);
    }
    // Zero keeps a value, and all ones are all that is supported.
    for (field, value) in [
        (port_info::LINK_WIDTH_ENABLED, 0),
        (port_info::LINK_WIDTH_ENABLED, 255),
        (port_info::LINK_SPEED_ENABLED, 15),
        (port_info::OPERATIONAL_VLS, 0),
    ] {
        let before = bench.value(0x15, 0, field);
        assert_eq!(bench.set(0x15, 0, &[(field, value)]), 0);
        assert_eq!(bench.value(0x15, 0, field), before);
    }
    // A port of a switch with a cable has no LID, and a manager writes zeros there.
    assert_eq!(switch().set(0x15, 1, &[(port_info::LID, 0)]), 0);
    assert_eq!(switch().addressed().set(0x15, 0, &[(port_info::LMC, 1)]), BAD);
}

#[test]
fn read_only_fields_ignore_a_set() {
    let mut bench = adapter().addressed();
    for field in [port_info::MTU_CAP, port_info::VL_CAP, port_info::CAPABILITY_MASK] {
        let before = bench.value(0x15, 0, field);
        assert_eq!(bench.set(0x15, 0, &[(field, before ^ 1)]), 0);
        assert_eq!(bench.value(0x15, 0, field), before, "{}", field.name);
    }
}

#[test]
fn addresses_follow_lid_and_lmc() {
    let mut bench = adapter();
    assert_eq!(bench.agents.lid(), Lid::new(0));
    assert!(!bench.agents.owns(Lid::new(0)));
    let values = [(port_info::LID, 8), (port_info::MASTER_SM_LID, 3), (port_info::LMC, 2)];
    assert_eq!(bench.set(0x15, 0, &values), 0);
    assert_eq!(bench.changes(), [Change::Address(Lid::new(8)), Change::Reregister]);
    assert_eq!(bench.set(0x15, 0, &values), 0);
    assert_eq!(bench.changes(), [], "nothing is new");
    let asked = [&values[..], &[(port_info::CLIENT_REREGISTER, 1)]].concat();
    assert_eq!(bench.set(0x15, 0, &asked), 0);
    assert_eq!(bench.changes(), [Change::Reregister]);
    let owned: Vec<u16> = (0..20).filter(|lid| bench.agents.owns(Lid::new(*lid))).collect();
    assert_eq!(owned, [8, 9, 10, 11]);
}

#[test]
fn a_linear_table_entry_is_a_route_up_to_the_top() {
    let mut bench = switch();
    assert_eq!(bench.get(0x19, 0).1, [255; 64]);
    let mut block = [255; 64];
    (block[2], block[9], block[5]) = (3, 9, 0);
    assert_eq!(bench.put(0x19, 1, &block), 0);
    assert_eq!(bench.changes(), [Change::Routes { block: 1 }]);
    assert_eq!(bench.agents.output(Lid::new(66)), None, "above the top");
    assert_eq!(bench.set(0x12, 0, &[(switch_info::LINEAR_FDB_TOP, 66)]), 0);
    assert_eq!(bench.agents.output(Lid::new(66)), Some(port(3)));
    assert_eq!(bench.set(0x12, 0, &[(switch_info::LINEAR_FDB_TOP, 100)]), 0);
    let outputs = [69, 73, 70].map(|lid| bench.agents.output(Lid::new(lid)));
    assert_eq!(outputs, [None; 3], "port 0, no such port, no entry");
    assert_eq!(bench.get(0x19, 0xc000 / 64).0, BAD);
    assert_eq!(bench.set(0x12, 0, &[(switch_info::LINEAR_FDB_TOP, 0xc000)]), BAD);
    assert_eq!(bench.value(0x12, 0, switch_info::LINEAR_FDB_TOP), 100);
    assert_eq!(adapter().get(0x19, 0).0, status::ATTRIBUTE);
}

#[test]
fn a_multicast_mask_is_a_set_of_ports() {
    let mut bench = switch();
    let mut block = [0; 64];
    block[3] = 0b10110;
    assert_eq!(bench.put(0x1b, 2, &block), 0);
    assert_eq!(bench.changes(), [Change::Multicast { block: 2 }]);
    let rows = bench.agents.outputs(2);
    assert_eq!(rows[1], (Lid::new(0xc041), vec![port(1), port(2), port(4)]));
    assert!(rows.iter().enumerate().all(|(row, (_, ports))| row == 1 || ports.is_empty()));
    for modifier in [32, 1 << 28, 1 << 9] {
        assert_eq!(bench.get(0x1b, modifier).0, BAD, "{modifier:#x}");
    }
}

#[test]
fn lanes_and_weights_are_those_that_were_set() {
    let mut bench = switch();
    bench.agents.preset_lanes(|_, _, level| VirtualLane::truncate(level.get() % 4));
    assert_eq!(bench.agents.lanes(1, 2)[5].get(), 1);
    assert_eq!(bench.put(0x17, 1 << 8 | 2, &[0x33; 8]), 0);
    assert_eq!(bench.changes(), [Change::Lanes { input: 1, output: 2 }]);
    assert!(bench.agents.lanes(1, 2).iter().all(|lane| lane.get() == 3));
    assert_eq!(bench.agents.lanes(2, 1)[5].get(), 1);
    assert_eq!(bench.get(0x17, 5 << 8).0, BAD);
    let mut block = [0; 64];
    block[..6].copy_from_slice(&[1, 10, 0, 0, 0, 20]);
    assert_eq!(bench.put(0x18, 3 << 16 | 2, &block), 0);
    assert_eq!(bench.set(0x15, 2, &[(port_info::VL_HIGH_LIMIT, 9)]), 0);
    assert_eq!(bench.changes(), [Change::Arbitration(port(2)), Change::Arbitration(port(2))]);
    let tables = bench.agents.arbitration(port(2));
    assert_eq!((tables.high, tables.high_limit), (vec![(1, 10), (0, 20)], 9));
    assert_eq!(tables.low.len(), 15);
    for modifier in [2 << 16 | 2, 4 << 16 | 2, 2, 1 << 16 | 5] {
        assert_eq!(bench.get(0x18, modifier).0, BAD, "{modifier:#x}");
    }
    assert_eq!(adapter().get(0x17, 1).0, BAD);
}

#[test]
fn key_tables_and_guids_have_one_block_each() {
    let mut bench = adapter();
    assert_eq!(&bench.get(0x16, 0).1[..4], [0xff, 0xff, 0, 0]);
    assert_eq!(bench.get(0x16, 1).0, BAD);
    assert_eq!(bench.get(0x14, 1).0, BAD);
    assert_eq!(bench.put(0x14, 0, &[0x55; 64]), 0);
    let guids = bench.get(0x14, 0).1;
    assert_eq!(
        (guid_info::GUID.at(0, &guids), guid_info::GUID.at(1, &guids)),
        (GUID + 1, 0x5555_5555_5555_5555)
    );
}

#[test]
fn unknown_requests_get_the_status_of_the_standard() {
    let mut bench = switch();
    let request = |class, method, attribute| Datagram::request(class, method, attribute, 0, 1);
    let mut old = request(SUBNET_DIRECTED, method::GET, 0x11);
    old.set(&datagram::CLASS_VERSION, 9);
    let mut young = request(CONGESTION, method::GET, 0x11);
    young.set(&datagram::CLASS_VERSION, 1);
    let rows = [
        (request(SUBNET_DIRECTED, method::GET, 0xff90), status::ATTRIBUTE),
        (request(SUBNET_DIRECTED, method::GET, 0x20), status::ATTRIBUTE),
        (request(SUBNET_DIRECTED, 0x12, 0x11), status::METHOD),
        (request(SUBNET_DIRECTED, method::SET, 0x11), status::ATTRIBUTE),
        (request(PERFORMANCE, method::GET, 0x10), status::ATTRIBUTE),
        (request(PERFORMANCE, 0x12, 0x12), status::METHOD),
        (request(CONGESTION, method::GET, 0x16), status::ATTRIBUTE),
        (request(0x0a, method::GET, 0x17), status::ATTRIBUTE),
        (old, status::VERSION),
        (young, status::VERSION),
    ];
    for (request, expected) in rows {
        assert_eq!(bench.ask(request.clone()).0, expected, "{request:?}");
    }
    let mut broken = request(SUBNET_DIRECTED, method::GET, 0x11);
    broken.set(&BASE_VERSION, 2);
    let outcome = bench.hand_in(&mut broken, 1, at(0));
    assert_eq!(outcome, Outcome::Refused(DropReason::Management));
}

#[test]
fn a_key_that_does_not_fit_is_counted_and_not_answered() {
    let mut bench = adapter().addressed();
    let keyed = [(port_info::M_KEY, 5), (port_info::M_KEY_PROTECT, 1), (port_info::M_KEY_LEASE, 2)];
    assert_eq!(bench.set(0x15, 0, &keyed), 0);
    let request = |method, key| {
        let mut request = Datagram::request(SUBNET_DIRECTED, method, 0x15, 0, 3);
        request.set(&M_KEY, key);
        request
    };
    assert_eq!(port_info::M_KEY.get(&bench.ask(request(method::GET, 0)).1), 0, "it is hidden");
    assert_eq!(port_info::M_KEY.get(&bench.ask(request(method::GET, 5)).1), 5);
    let refused = Outcome::Refused(DropReason::Key);
    assert_eq!(bench.hand_in(&mut request(method::SET, 4), 1, at(0)), refused);
    let shown = bench.ask(request(method::GET, 5)).1;
    assert_eq!(port_info::M_KEY_VIOLATIONS.get(&shown), 1);
    // The lease has stopped with the good key. With level 2 reads are refused too, and the lease runs out.
    let mut strict = request(method::SET, 5);
    strict.data_mut().copy_from_slice(&shown);
    port_info::M_KEY_PROTECT.set(strict.data_mut(), 2);
    port_info::PORT_STATE.set(strict.data_mut(), 0);
    port_info::PHYS_STATE.set(strict.data_mut(), 0);
    assert_eq!(bench.ask(strict).0, 0);
    assert_eq!(bench.hand_in(&mut request(method::GET, 4), 1, at(0)), refused);
    let ends = bench.agents.poll_timeout();
    assert_eq!(ends, at(2_000_000));
    bench.agents.handle_timeout(ends);
    assert_eq!(bench.hand_in(&mut request(method::GET, 4), 1, ends), Outcome::Answer);
}

#[test]
fn a_change_of_a_link_is_reported_until_the_manager_represses_it() {
    let mut bench = switch().addressed();
    bench.observe(2, true, LinkState::Initialize, 0);
    assert!(bench.agents.poll_trap(at(1)).is_none(), "no route leads to the manager");
    assert_eq!(bench.set(0x12, 0, &[(switch_info::LINEAR_FDB_TOP, 9)]), 0);
    assert_eq!(bench.put(0x19, 0, &[2; 64]), 0);
    assert!(bench.agents.poll_trap(at(1)).is_some());
    assert!(bench.agents.poll_trap(at(1)).is_none());
    let (_, mut data) = bench.get(0x12, 0);
    switch_info::PORT_STATE_CHANGE.set(&mut data, 1);
    assert_eq!(bench.put(0x12, 0, &data), 0);
    assert_eq!(bench.value(0x12, 0, switch_info::PORT_STATE_CHANGE), 0);
    bench.observe(1, true, LinkState::Initialize, 0);
    assert_eq!(bench.value(0x12, 0, switch_info::PORT_STATE_CHANGE), 1);
    let trap = bench.agents.poll_trap(at(1)).expect("trap 128");
    let data = trap.data();
    assert_eq!(notice::TRAP.get(data), 128);
    assert_eq!((notice::ISSUER_LID.get(data), notice::DETAILS.at(1, data)), (7, 7));
    assert_eq!((trap.class(), trap.method()), (datagram::SUBNET_LID_ROUTED, method::TRAP));
    assert!(bench.agents.poll_trap(at(1)).is_none());
    let again = bench.agents.poll_timeout();
    assert!(again > at(1) && again < Instant::NEVER);
    let same = bench.agents.poll_trap(again).expect("it is repeated");
    assert_eq!(same.get(&TRANSACTION), trap.get(&TRANSACTION));
    let mut repress = same;
    repress.set(&datagram::METHOD, method::TRAP_REPRESS.into());
    assert_eq!(bench.hand_in(&mut repress, 1, at(3)), Outcome::Taken);
    assert_eq!(bench.agents.poll_timeout(), Instant::NEVER);
    let (_, mut data) = bench.get(0x12, 0);
    switch_info::PORT_STATE_CHANGE.set(&mut data, 1);
    assert_eq!(bench.put(0x12, 0, &data), 0);
    assert_eq!(bench.value(0x12, 0, switch_info::PORT_STATE_CHANGE), 0);
}

#[test]
fn a_set_of_the_state_raises_no_trap_and_a_manager_that_leaves_does() {
    let mut bench = adapter().addressed().active(1);
    assert!(bench.agents.poll_trap(at(5)).is_none());
    bench.agents.set_manager(true, at(5));
    let trap = bench.agents.poll_trap(at(5)).expect("trap 144");
    assert_eq!(notice::TRAP.get(trap.data()), 144);
    // SMInfo is then the manager's.
    let mut request = Datagram::request(SUBNET_DIRECTED, method::GET, 0x20, 0, 1);
    assert_eq!(bench.hand_in(&mut request, 1, at(5)), Outcome::Client);
}

#[test]
fn counters_count_from_their_last_reset_and_stop_at_the_top() {
    let mut bench = switch();
    let counters = |bench: &mut Bench, method, select: u8, mask: u64| {
        let mut request = Datagram::request(PERFORMANCE, method, 0x12, 0, 1);
        request.data_mut()[1] = select;
        pm::port_counters::COUNTER_SELECT.set(request.data_mut(), mask);
        bench.ask(request)
    };
    let packets = |data: &[u8]| pm::port_counters::XMIT_PACKETS.get(data);
    bench.traffic.sent.packets = 10;
    bench.traffic.sent.octets = 10 * 290;
    let (status, data) = counters(&mut bench, method::GET, 1, 0xffff);
    assert_eq!((status, packets(&data)), (0, 10));
    assert_eq!(pm::port_counters::XMIT_DATA.get(&data), 10 * 72);
    assert_eq!(packets(&counters(&mut bench, method::GET, 255, 0).1), 40, "the sum of four ports");
    assert_eq!(packets(&counters(&mut bench, method::SET, 1, 1 << 14).1), 0);
    bench.traffic.sent.packets = 13;
    bench.traffic.sent.octets = 13 * 290;
    let (_, data) = counters(&mut bench, method::GET, 1, 0);
    assert_eq!((packets(&data), pm::port_counters::XMIT_DATA.get(&data)), (3, 13 * 72));
    bench.traffic.sent.packets = 1 << 40;
    bench.traffic.sent.octets = 290 << 40;
    assert_eq!(packets(&counters(&mut bench, method::GET, 1, 0).1), 0xffff_ffff);
    let mut long = Datagram::request(PERFORMANCE, method::GET, 0x1d, 0, 1);
    long.data_mut()[1] = 1;
    let (_, data) = bench.ask(long);
    assert_eq!(pm::port_counters_extended::XMIT_PACKETS.get(&data), 1 << 40);
    for select in [0, 5, 254] {
        assert_eq!(counters(&mut bench, method::GET, select, 0).0, BAD, "port {select}");
    }
}

#[test]
fn an_agent_counts_links_that_went_and_packets_with_bad_keys_at_their_port() {
    use pm::port_counters::{LINK_DOWNED, RCV_CONSTRAINT_ERRORS, XMIT_CONSTRAINT_ERRORS};
    let mut bench = switch().active(2);
    bench.observe(2, false, LinkState::Down, 0);
    let packet = BadPartition {
        key: 0x8001,
        level: ServiceLevel::truncate(0),
        source: Lid::new(1),
        destination: Lid::new(2),
        source_pair: None,
        pair: QueuePairNumber::truncate(5),
    };
    let (inbound, outbound) = (Checkpoint::Inbound(port(2)), Checkpoint::Outbound(port(2)));
    for at in [inbound, inbound, outbound] {
        bench.agents.note_bad_partition(at, &packet, self::at(5));
    }
    let mut request = Datagram::request(PERFORMANCE, method::GET, 0x12, 0, 1);
    request.data_mut()[1] = 2;
    let (_, data) = bench.ask(request);
    let counted = [LINK_DOWNED, RCV_CONSTRAINT_ERRORS, XMIT_CONSTRAINT_ERRORS];
    assert_eq!(counted.map(|field| field.get(&data)), [1, 2, 1]);
}

fn congestion(
    bench: &mut Bench,
    attribute: u16,
    modifier: u32,
    values: &[(Field, usize, u64)],
) -> u16 {
    let mut request = Datagram::request(CONGESTION, method::SET, attribute, modifier, 1);
    for (field, index, value) in values {
        field.set_at(*index, request.data_mut(), *value);
    }
    bench.ask(request).0
}

#[test]
fn a_switch_marks_as_its_control_map_says() {
    use cc::switch_congestion_setting::*;
    let mut bench = switch();
    let values = [
        (CONTROL_MAP, 0, 0b10101),
        (VICTIM_MASK, 3, 1 << 2),
        (THRESHOLD, 0, 15),
        (PACKET_SIZE, 0, 8),
        (MARKING_RATE, 0, 3),
    ];
    assert_eq!(congestion(&mut bench, 0x14, 0, &values), 0);
    assert_eq!(bench.changes(), [Change::Congestion]);
    let marking = |bench: &Bench, number| bench.agents.congestion().marking(port(number));
    let expected = congestion::Marking { threshold: 15, packet_size: 8, rate: 3, victims: false };
    assert_eq!(marking(&bench, 1), expected);
    assert_eq!(marking(&bench, 2), congestion::Marking { victims: true, ..expected });
    // A field outside the map stays.
    assert_eq!(
        congestion(&mut bench, 0x14, 0, &[(CONTROL_MAP, 0, 1 << 4), (MARKING_RATE, 0, 9)]),
        0
    );
    let expected = congestion::Marking { rate: 9, ..expected };
    assert_eq!(marking(&bench, 1), expected);
    // A port with a setting of its own.
    use cc::switch_port_congestion_setting as own;
    let values = [(own::VALID, 3, 1), (own::THRESHOLD, 3, 4)];
    assert_eq!(congestion(&mut bench, 0x15, 0, &values), 0);
    assert_eq!(marking(&bench, 3).threshold, 4);
    assert_eq!(marking(&bench, 1).threshold, 15);
}

#[test]
fn a_table_is_in_force_when_the_block_with_its_limit_has_come() {
    use cc::congestion_control_table::*;
    let mut bench = adapter();
    use cc::ca_congestion_setting as setting;
    let values = [
        (setting::CONTROL_MAP, 0, 1),
        (setting::CCTI_TIMER, 0, 150),
        (setting::CCTI_INCREASE, 0, 1),
        (setting::CCTI_INCREASE, 1, 9),
    ];
    assert_eq!(congestion(&mut bench, 0x16, 0, &values), 0);
    let block = |last| [(CCTI_LIMIT, 0, 64), (SHIFT, 0, 3), (MULTIPLIER, 0, last)];
    assert_eq!(congestion(&mut bench, 0x17, 0, &block(5)), 0);
    assert_eq!(bench.agents.congestion().reaction(0), None);
    assert_eq!(congestion(&mut bench, 0x17, 1, &block(7)), 0);
    let reaction = bench.agents.congestion().reaction(0).expect("a table");
    assert_eq!((reaction.timer, reaction.increase, reaction.table.len()), (150, 1, 65));
    assert_eq!((reaction.table[0], reaction.table[64]), (3 << 14 | 5, 3 << 14 | 7));
    assert_eq!(bench.agents.congestion().reaction(1).map(|it| it.increase), Some(0));
    assert_eq!(congestion(&mut bench, 0x17, 2, &block(1)), BAD);
    assert_eq!(congestion(&mut bench, 0x17, 0, &[(CCTI_LIMIT, 0, 128)]), BAD);
    // The key protects all of it.
    assert_eq!(congestion(&mut bench, 0x12, 0, &[(cc::congestion_key_info::KEY, 0, 6)]), 0);
    let mut wrong = Datagram::request(CONGESTION, method::SET, 0x16, 0, 1);
    wrong.set(&CC_KEY, 5);
    let outcome = bench.hand_in(&mut wrong, 1, at(0));
    assert_eq!(outcome, Outcome::Refused(DropReason::Key));
}
