//! QCN-06: messages of versions that nobody knows yet, and with bits set that are reserved.

use crate::bench::Bench;
use crate::bench::devices::ethernet::{LOSSLESS, nic, pause};
use crate::bench::devices::{MTU, burst, class};
use crate::bench::packets::congestion::{self, CNM, opinion};
use crate::case::{Failure, Finding, ensure, same};
use nicd::config::{NicConfig, Transport};
use nicd::nic::Nic;
use proto::congestion::SchemeConfig;
use proto::frame::Frame;
use proto::ids::Lid;
use proto::link::{LinkControl, PauseConfig};
use proto::units::{Duration, Instant};
use proto::wire::classify::PriorityMap;
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Cnm, MacAddress, plan};

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

/// Version and reserved bits of messages, and whether such a one is heeded.
pub const KINDS: [((u8, u8), bool); 6] = [
    ((1, 0), false),
    ((15, 0), false),
    ((1, 0x3f), false),
    ((0, 0x3f), true),
    ((0, 1), true),
    ((0, 0), true),
];

/// About a frame to adapter `to`, for whoever sent it, adapter `sender`.
pub fn message((version, reserved): (u8, u8), (sender, to): (u16, u16)) -> Frame {
    let cnm = Cnm { version, reserved, ..opinion(SWITCH, to) };
    congestion::message(cnm, (SWITCH, sender), CNM, LEAST)
}

fn rate(bench: &mut Bench<Nic>) -> Result<u64, Failure> {
    let reading = bench.reading();
    let flow = reading.flows.first().ok_or_else(|| "the NIC has no flow".to_owned())?;
    Ok(flow.rate.value)
}

/// QCN-06.
pub fn version() -> Finding {
    const LINE: u64 = 8_000_000_000;
    for (kind @ (version, reserved), is_known) in KINDS {
        let mut bench = sending()?;
        bench.inject(1, message(kind, (SENDER, TO)));
        bench.run_for(Duration::from_us(1));
        let what = format!("version {version}, reserved {reserved:#x}");
        let owed = if is_known { LINE / 4 * 3 } else { LINE };
        same(format_args!("{what}: rate"), rate(&mut bench)?, owed)?;
        let handled = bench.named(1, "rp_cnm_handled");
        let malformed = bench.named(1, "rp_cnm_malformed");
        let counted = (handled, malformed) == (u64::from(is_known), u64::from(!is_known));
        ensure(counted, || format!("{what}: {handled} handled, {malformed} malformed"))?;
    }
    Ok("versions 1 and 15 discarded and counted; reserved bits ignored".to_owned())
}
