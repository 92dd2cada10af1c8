//! IBRX-06, IBRX-07: where a packet goes by its address, and when by the state of its link.

use super::{adapter, adapter_config, fresh_switch};
use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, GROUP, MTU, burst, switch};
use crate::bench::packets::{frame, send_only, with_opcode};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::device::Device;
use proto::frame::Frame;
use proto::ids::{Lid, VirtualLane};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket, Opcode, PacketBuilder};
use switchd::switch::Switch;

fn to(dlid: u16, lane: u8, payload: usize) -> Frame {
    let virtual_lane = VirtualLane::truncate(lane);
    frame(&PacketBuilder { virtual_lane, dlid: Lid::new(dlid), ..send_only(1, 3, 0) }, payload)
}

/// How many packets have left by each of four ports.
fn out_by_port(bench: &Bench<Switch>) -> [usize; 4] {
    [1, 2, 3, 4].map(|port| bench.packets(port).count())
}

/// IBRX-06: every address a switch has no route for ends with its reason and leaves nowhere.
pub fn odd_destinations() -> Finding {
    let mut bench = fresh_switch(1)?;
    let unassigned: Vec<u16> = (5..=0xbfff).collect();
    end_as(&mut bench, &unassigned, 0, "no_route")?;
    end_as(&mut bench, &[0], 0, "no_route")?;
    end_as(&mut bench, &[0xffff], 0, "no_route")?;
    let groups: Vec<u16> = (0xc000..=0xfffe).filter(|lid| *lid != GROUP).collect();
    end_as(&mut bench, &groups, 0, "no_multicast_route")?;
    end_as(&mut bench, &[0xffff, 100], 15, "management")?;
    same("packets out", format!("{:?}", out_by_port(&bench)), "[0, 0, 0, 0]".to_owned())?;

    let before = bench.reading();
    bench.send(1, to(GROUP, 0, 64));
    bench.run_for(FRAME_TIME);
    same("copies of a multicast", format!("{:?}", out_by_port(&bench)), "[0, 1, 1, 0]".to_owned())?;
    same("losses upon it", bench.lost_since(&before, 1), "nothing".to_owned())?;

    let mut bench = adapter(3, Transport::Rc)?;
    for (dlid, lane, reason) in [
        (4, 0, "not_for_us 1"),
        (0, 0, "not_for_us 1"),
        (0xffff, 0, "not_for_us 1"),
        (0xffff, 15, "management 1"),
        (GROUP, 0, "nothing"),
    ] {
        let before = bench.reading();
        bench.send(1, to(dlid, lane, 64));
        bench.run_for(FRAME_TIME);
        same(
            format!("losses of a NIC upon LID {dlid:#06x}"),
            bench.lost_since(&before, 1),
            reason.to_owned(),
        )?;
    }
    same("packets from the NIC", bench.packets(1).count(), 0)?;
    Ok(format!(
        "{} unassigned LIDs, 0 and the permissive one: no_route; {} groups: no_multicast_route; one \
         group to its ports; permissive on VL15: management",
        unassigned.len(),
        groups.len()
    ))
}

/// One packet to each of `lids` on `lane`: all end at port 1 for this reason.
fn end_as(bench: &mut Bench<Switch>, lids: &[u16], lane: u8, reason: &str) -> Result<(), Failure> {
    let before = bench.reading();
    for dlid in lids {
        bench.send(1, to(*dlid, lane, 64));
    }
    let lost = bench.lost_since(&before, 1);
    let what = format!("losses upon {} LIDs from {:#06x} on VL{lane}", lids.len(), lids[0]);
    same(what, lost, format!("{reason} {}", lids.len()))
}

/// What a port must do with a data packet and with a management packet in one state of its link.
struct Expected {
    state: &'static str,
    data: &'static str,
    management: &'static str,
    /// Packets of its own backlog that a NIC sends meanwhile.
    sends: bool,
}

/// IBRX-07: a port that hears nothing, initializes, is armed, and is active.
pub fn link_state_filter() -> Finding {
    let states = [
        (
            0,
            Expected {
                state: "Down",
                data: "link_state 1",
                management: "management 1",
                sends: false,
            },
        ),
        (
            1,
            Expected {
                state: "Initialize",
                data: "link_state 1",
                management: "management 1",
                sends: false,
            },
        ),
        (2, Expected { state: "Arm", data: "nothing", management: "management 1", sends: false }),
        (3, Expected { state: "Active", data: "nothing", management: "management 1", sends: true }),
    ];
    for (trained, expected) in &states {
        let mut config = adapter_config(3, Transport::Uc);
        config.traffic.push(burst(1, 0, 256, 5, Instant::ZERO));
        let nic = Nic::new(config).map_err(|error| error.to_string())?;
        let mut bench = in_state(nic, *trained);
        let data = frame(&with_opcode(Opcode::UC_SEND_ONLY, 1, 3, 0), 256);
        receives_as(&mut bench, data, expected)?;
        let sent = bench.packets(1).count();
        let expected_sent = if expected.sends { 5 } else { 0 };
        same(format!("packets a NIC sends in {}", expected.state), sent, expected_sent)?;

        let switch = Switch::new(switch(4, 1)).map_err(|error| error.to_string())?;
        let mut bench = in_state(switch, *trained);
        receives_as(&mut bench, frame(&send_only(1, 3, 0), MTU), expected)?;
        let sent = bench.packets(3).count();
        same(
            format!("packets a switch passes in {}", expected.state),
            sent,
            usize::from(expected.sends),
        )?;
    }
    Ok("Down and Initialize: data ends as link_state; Arm: data is taken, none is sent; Active: all \
        passes; VL15 and flow control in every state"
        .to_owned())
}

/// A device whose links have been brought so far: 0 nothing said, 1 one lane of none heard (its own
/// packets flow), 2 initialized by the neighbour, 3 normal flow control heard.
fn in_state<D: Device>(device: D, trained: u8) -> Bench<D> {
    let mut bench = Bench::new(device, 1);
    let ports = bench.device.ports() as u8;
    (1..=ports).for_each(|port| bench.neighbour(port).speaks = false);
    if trained > 0 {
        bench.run_for(Duration::from_us(10));
    }
    let ops = [FlowControlOp::Init, FlowControlOp::Normal];
    for op in ops.into_iter().take(usize::from(trained).saturating_sub(1)) {
        for port in 1..=ports {
            let packet =
                FlowControlPacket { op, fctbs: 0, virtual_lane: VirtualLane::ZERO, fccl: 2048 };
            bench.say(port, packet);
        }
    }
    bench
}

fn receives_as<D: Device>(
    bench: &mut Bench<D>,
    data: Frame,
    expected: &Expected,
) -> Result<(), Failure> {
    let what = |kind: &str| format!("losses upon {kind} in {}", expected.state);
    let before = bench.reading();
    bench.inject(1, data);
    same(what("data"), bench.lost_since(&before, 1), expected.data.to_owned())?;
    let before = bench.reading();
    bench.inject(1, to(0xffff, 15, 256));
    same(what("management"), bench.lost_since(&before, 1), expected.management.to_owned())?;
    bench.run_for(Duration::from_us(20));
    let heard = bench.flow_control(1, 0).count();
    ensure(heard > 0, || format!("no flow control is sent in {}", expected.state))
}
