//! Validation of a NIC on Ethernet, and configurations that are written and read again.

use super::*;
use crate::config::{DrainConfig, RoceVersion, StormConfig};
use crate::nic::tests::cable;
use proto::ids::Dscp;
use proto::units::{BitRate, Instant};

fn ethernet() -> NicConfig {
    cable::on_ethernet(cable::config(1), RoceVersion::V2Ipv6)
}

fn with(change: impl FnOnce(&mut RoceConfig)) -> NicConfig {
    let mut config = ethernet();
    let Encapsulation::Roce(roce) = &mut config.wire else { panic!("on Ethernet") };
    change(roce);
    config
}

fn refused_field(config: &NicConfig) -> String {
    let rule = config.check().expect_err("refused").to_string();
    rule.split_once(" is ").expect("a field and its value").0.to_owned()
}

const DRAIN: DrainConfig =
    DrainConfig { rate: BitRate::gbps(1), xoff: Bytes::new(20_000), xon: Bytes::new(10_000) };

#[test]
fn wire_format_and_link_must_match() {
    assert!(ethernet().check().is_ok());
    let on_credits = NicConfig { link: cable::config(1).link, ..ethernet() };
    let refused = |config: NicConfig| config.check().expect_err("refused").to_string();
    let rule = "the wire format does not fit the link: InfiniBand needs credits, RoCE needs pause";
    assert_eq!(refused(on_credits), rule);
    let on_pause = NicConfig { link: ethernet().link, ..cable::config(1) };
    assert_eq!(refused(on_pause), rule);
}

#[test]
fn impossible_roce_settings_are_refused() {
    assert_eq!(refused_field(&with(|roce| roce.dscp.truncate(15))), "dscp");
    let drain = |drain| with(|roce| roce.drain = Some(drain));
    assert!(drain(DRAIN).check().is_ok());
    assert_eq!(refused_field(&drain(DrainConfig { xon: Bytes::new(20_001), ..DRAIN })), "xon");
    assert_eq!(refused_field(&drain(DrainConfig { xoff: Bytes::new(1 << 30), ..DRAIN })), "xoff");
    let storm = |priorities| {
        with(|roce| roce.storm = Some(StormConfig { start: Instant::ZERO, priorities }))
    };
    assert!(storm(1 << 3).check().is_ok());
    assert_eq!(refused_field(&storm(1 << 4)), "storm.priorities", "priority 4 is not lossless");
}

#[test]
fn a_written_configuration_reads_back_equal() {
    let storm = StormConfig { start: Instant::from_ps(7), priorities: 8 };
    let full = with(|roce| {
        (roce.drain, roce.storm) = (Some(DRAIN), Some(storm));
        roce.dscp[4] = Dscp::truncate(46);
    });
    for config in [cable::config(1), ethernet(), full] {
        let text = toml::to_string(&config).expect("a table");
        assert_eq!(toml::from_str::<NicConfig>(&text).expect("a NIC's configuration"), config);
    }
}
