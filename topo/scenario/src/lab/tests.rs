//! What `[lab] attach` says of pauses, and what a switch gets of it.

use crate::Scenario;
use crate::render::render;
use proto::link::{PauseConfig, PauseMode};
use proto::units::{BitRate, Duration};
use proto::wire::classify::PriorityMap;

/// A switch with one attached port, described by `keys`, on a fabric whose links use `pause`.
fn scenario(pause: &str, keys: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
        schema = 1
        name = "attached"
        [run]
        duration = "1 ms"
        backend = "netns"
        [fabric]
        technology = "ethernet"
        nodes = [{{ name = "s1", kind = "switch" }}]
        links = []
        link = {{ pause = "{pause}" }}
        switch = {{ buffer = "64 MB", headroom = "2 MB" }}
        [lab]
        attach = [{{ port = "s1:1", iface = "a"{keys} }}]
        "#
    );
    Scenario::parse(&text, &[]).map_err(|problems| problems.in_file("attached.toml"))
}

fn port(pause: &str, keys: &str) -> PauseConfig {
    let lab = render(&scenario(pause, keys).expect("it is valid"));
    lab.switches[0].ports[0].link.pause().expect("Ethernet").clone()
}

#[test]
fn quanta_count_bit_times_of_a_rate_that_a_host_can_have() {
    let rate = |keys: &str| port("pfc", keys).quanta_rate;
    assert_eq!(rate(""), Some(BitRate::gbps(10)));
    assert_eq!(rate(r#", rate = "none""#), Some(BitRate::gbps(10)));
    assert_eq!(rate(r#", rate = "1 Gbps""#), Some(BitRate::gbps(1)));
    assert_eq!(rate(r#", pause_rate = "25 Gbps""#), Some(BitRate::gbps(25)));
    let shaped = r#", rate = "200 Mbps", pause_rate = "1 Gbps""#;
    assert_eq!(rate(shaped), Some(BitRate::gbps(1)));
}

#[test]
fn pauses_and_priorities_are_those_of_the_link_or_of_the_port() {
    let pause = port("pause", "");
    assert_eq!((pause.mode, pause.priorities), (PauseMode::Global, PriorityMap::BY_DSCP));
    let pause = port("none", r#", pause = "pfc", priorities = "pcp""#);
    assert_eq!((pause.mode, pause.priorities), (PauseMode::Pfc, PriorityMap::BY_PCP));
    assert_eq!(port("pfc", r#", pause = "none""#).mode, PauseMode::None);
}

#[test]
fn a_pause_rate_without_pauses_and_unknown_words_are_refused() {
    let refused = |pause, keys| scenario(pause, keys).expect_err("it is refused");
    let text = refused("none", r#", pause_rate = "1 Gbps""#);
    assert!(text.contains("neither sends nor obeys pauses"), "{text}");
    let text = refused("pfc", r#", pause = "none", pause_rate = "1 Gbps""#);
    assert!(text.contains("neither sends nor obeys pauses"), "{text}");
    for keys in [r#", pause = "xon""#, r#", priorities = "vlan""#, r#", pause_rate = "none""#] {
        assert!(refused("pfc", keys).contains("attached.toml"), "{keys}");
    }
}

#[test]
fn lateness_has_a_unit_only_at_a_port_with_a_rate() {
    let unit = |keys: &str| {
        let lab = render(&scenario("pfc", keys).expect("it is valid"));
        lab.fabric.wiring.attached[0].frame_time
    };
    assert_eq!(unit(""), Duration::ZERO);
    assert!(unit(r#", rate = "1 Gbps""#) > Duration::from_us(12));
}
