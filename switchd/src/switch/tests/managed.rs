//! A switch with a management agent: what it makes and takes is in its sums, and what it drops has a reason.

use super::bench::{Bench, Look};
use super::infiniband::config;
use crate::config::SwitchConfig;
use crate::switch::Switch;
use management::agent::performance::Totals;
use management::attribute::subnet::{port_info, switch_info};
use management::datagram::{PERFORMANCE, SUBNET_DIRECTED, SUBNET_LID_ROUTED, method};
use management::packet::{self, Addresses};
use management::{Datagram, ManagementConfig};
use proto::counters::DropReason;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, VirtualLane};
use proto::link::credit::LinkState;
use proto::units::{Duration, Instant};
use testbed::Bed;

/// LID of the switch.
const OWN: u16 = 9;

/// A switch with LID 9 whose port 1 carries data, and whose table leads to LID 1 by port 1.
fn managed(with_route: bool) -> Bench {
    let config = SwitchConfig { management: Some(ManagementConfig { guid: 7 }), ..config("none") };
    let mut bench = Bench::new(Switch::new(config).expect("it is valid"), 1);
    bench.device.ports[0].permit(LinkState::Active, Instant::ZERO);
    bench.run_for(Duration::from_us(50));
    set(&mut bench, 0x15, |data| {
        port_info::LID.set(data, OWN.into());
        port_info::MASTER_SM_LID.set(data, 1);
    });
    if with_route {
        set(&mut bench, 0x12, |data| switch_info::LINEAR_FDB_TOP.set(data, 1));
        set(&mut bench, 0x19, |data| data.fill(1));
    }
    let now = bench.now();
    bench.device.after_management(now);
    bench
}

/// Has the agent change what it shows of an attribute.
fn set(bench: &mut Bench, attribute: u16, change: impl FnOnce(&mut [u8])) {
    let now = bench.now();
    let agents = &mut bench.device.managed.as_mut().expect("it is managed").agents;
    let mut ask = |method, data: &[u8]| {
        let mut datagram = Datagram::request(SUBNET_DIRECTED, method, attribute, 0, 1);
        datagram.data_mut()[..data.len()].copy_from_slice(data);
        agents.receive(&mut datagram, 1, true, &mut |_| Totals::default(), now);
        assert_eq!(datagram.status(), 0, "{attribute:#x}");
        datagram.data().to_vec()
    };
    let mut data = ask(method::GET, &[]);
    change(&mut data);
    if attribute == 0x15 {
        port_info::PORT_STATE.set(&mut data, 0);
        port_info::PHYS_STATE.set(&mut data, 0);
    }
    ask(method::SET, &data);
}

fn frame(addresses: &Addresses, datagram: &Datagram) -> Frame {
    let mut octets = bytes::BytesMut::new();
    packet::emit(addresses, datagram, &mut octets);
    Frame::unchecked(FrameKind::Infiniband, octets)
}

/// A Get of NodeInfo, which the agent answers by the table.
fn request(to: u16) -> Frame {
    let request = Datagram::request(SUBNET_LID_ROUTED, method::GET, 0x11, 0, 1);
    frame(&Addresses::subnet(Lid::new(1), Lid::new(to)), &request)
}

/// Packets delivered and made here, and the drops of a port.
fn sums(bench: &mut Bench, port: usize) -> ([u64; 2], Vec<(DropReason, u64)>) {
    let reading = bench.reading();
    let drops = reading.ports[port - 1].drops.iter().filter(|(_, frames)| *frames > 0);
    ([reading.balance.delivered, reading.balance.injected], drops.collect())
}

#[test]
fn answers_are_in_the_sums_and_those_without_route_or_room_are_drops() {
    let mut bench = managed(true);
    bench.inject(1, request(OWN));
    bench.run_for(Duration::from_us(5));
    // Traps leave, too.
    let sent = bench.sent(1).len() as u64;
    assert_eq!(sums(&mut bench, 1), ([1, sent], vec![]));

    let mut bench = managed(false);
    bench.inject(1, request(OWN));
    assert_eq!(sums(&mut bench, 1), ([1, 1], vec![(DropReason::NoRoute, 1)]));
    // One for another node, to which no entry leads.
    bench.inject(1, request(77));
    assert_eq!(sums(&mut bench, 1), ([1, 1], vec![(DropReason::NoRoute, 2)]));

    let mut bench = managed(true);
    (0..40).for_each(|_| bench.inject(1, request(OWN)));
    bench.run_for(Duration::from_us(50));
    let ([delivered, made], drops) = sums(&mut bench, 1);
    let lost = made - bench.sent(1).len() as u64;
    assert_eq!((delivered, drops), (40, vec![(DropReason::ManagementOverrun, lost)]));
    assert!(made >= 40);
}

#[test]
fn nothing_but_subnet_management_leaves_by_a_port_that_is_not_active() {
    let mut bench = managed(true);
    let general = Addresses::general(Lid::new(1), Lid::new(OWN), 1, VirtualLane::ZERO);
    let counters = Datagram::request(PERFORMANCE, method::GET, 1, 0, 1);
    bench.inject(1, frame(&general, &counters));
    bench.run_for(Duration::from_us(5));
    let ([delivered, made], drops) = sums(&mut bench, 1);
    let lost = made - bench.sent(1).len() as u64;
    assert_eq!((delivered, lost, drops), (1, 1, vec![(DropReason::LinkState, 1)]));
}
