//! QCN-06: messages of versions that nobody knows yet, and with bits set that are reserved.

use crate::check::bench::Bench;
use crate::check::bench::devices::ethernet::{LOSSLESS, nic, pause};
use crate::check::bench::devices::{MTU, burst, class};
use crate::check::case::{Failure, Finding, ensure, same};
use bytes::BytesMut;
use nicd::config::{NicConfig, Transport};
use nicd::nic::Nic;
use proto::congestion::SchemeConfig;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, Priority, VlanId};
use proto::link::{LinkControl, PauseConfig};
use proto::units::{Duration, Instant};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::{Cnm, Envelope, MacAddress, VlanTag, ethertype, plan};

/// The station that sends, and where to.
const SENDER: u16 = 1;
const TO: u16 = 2;
/// Whoever says it.
const SWITCH: MacAddress = MacAddress::from_number(0x0200_0100_0064);

/// Adapter 1 with an endless backlog for adapter 2.
fn sending() -> Result<Bench<Nic>, Failure> {
    let address = plan::mac(Lid::new(SENDER));
    let control = PauseConfig { address, priorities: PriorityMap::BY_PCP, ..pause() };
    let mut config = NicConfig {
        classes: vec![class(Transport::Uc, LOSSLESS)],
        traffic: vec![burst(TO, 0, MTU as u64, 0, Instant::ZERO)],
        scheme: SchemeConfig { kind: "qcn".to_owned(), params: toml::Table::new() },
        ..nic(SENDER)
    };
    config.link.control = LinkControl::Pause(control);
    let mut bench = Bench::ethernet(Nic::new(config).map_err(|error| error.to_string())?);
    bench.run_for(Duration::from_us(20));
    Ok(bench)
}

/// About a frame of adapter 1 to adapter 2, with the octets before the CPID as they are given.
fn message(version: u8, reserved: u8) -> Frame {
    let cnm = Cnm {
        version,
        reserved,
        quantized_feedback: 32,
        cpid: SWITCH.number() << 16 | u64::from(LOSSLESS),
        encapsulated_priority: Priority::truncate(LOSSLESS),
        encapsulated_destination: plan::mac(Lid::new(TO)),
        ..Cnm::default()
    };
    let tag = VlanTag {
        priority: Priority::truncate(6),
        drop_eligible: false,
        id: VlanId::truncate(0),
        ethertype: 0,
    };
    let to = plan::mac(Lid::new(SENDER));
    let envelope = Envelope::untagged(to, SWITCH, ethertype::CNM).tagged(tag);
    let mut octets = BytesMut::zeroed(60);
    envelope.emit(&mut octets);
    let at = envelope.octets_len();
    octets[at..at + Cnm::LEN].copy_from_slice(&cnm.to_octets());
    Frame::unchecked(FrameKind::Ethernet, octets)
}

fn rate(bench: &mut Bench<Nic>) -> Result<u64, Failure> {
    let reading = bench.reading();
    let flow = reading.flows.first().ok_or_else(|| "the NIC has no flow".to_owned())?;
    Ok(flow.rate.value)
}

/// QCN-06.
pub fn version() -> Finding {
    const LINE: u64 = 8_000_000_000;
    for (version, reserved) in [(1, 0), (15, 0), (1, 0x3f), (0, 0x3f), (0, 1), (0, 0)] {
        let mut bench = sending()?;
        bench.inject(1, message(version, reserved));
        bench.run_for(Duration::from_us(1));
        let what = format!("version {version}, reserved {reserved:#x}");
        let is_known = version == Cnm::VERSION;
        let owed = if is_known { LINE / 4 * 3 } else { LINE };
        same(format_args!("{what}: rate"), rate(&mut bench)?, owed)?;
        let handled = bench.named(1, "rp_cnm_handled");
        let malformed = bench.named(1, "rp_cnm_malformed");
        let counted = (handled, malformed) == (u64::from(is_known), u64::from(!is_known));
        ensure(counted, || format!("{what}: {handled} handled, {malformed} malformed"))?;
    }
    Ok("versions 1 and 15 discarded and counted; reserved bits ignored".to_owned())
}
