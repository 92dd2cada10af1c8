//! The ideal, against the figures of docs/spec/algorithms.md 10.1 and by hand.

use super::*;
use scenario::Scenario;
use scenario::render::render;

fn lab(traffic: &str) -> Lab {
    let text = format!(
        r#"
        schema = 1
        name = "ideal"
        run = {{ duration = "1000 mtu" }}
        [fabric]
        shape = "star"
        hosts = 5
        {traffic}"#
    );
    render(&Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}")))
}

fn window(from: u64, to: u64) -> Window {
    let tau = 2_074_000;
    (Instant::from_ps(from * tau), Instant::from_ps(to * tau))
}

const INCAST: &str = r#"
    [[traffic]]
    name = "cold"
    from = "h*"
    to = "uniform"
    load = 0.4

    [[traffic]]
    name = "hot"
    from = "h[0-1]"
    to = "h4"
    load = 0.5
    start = "200 mtu"
    stop = "800 mtu""#;

#[test]
fn a_port_asked_for_more_than_its_line_is_hot_and_the_others_are_owed_what_is_sent_to_them() {
    let lab = lab(INCAST);
    let ideal = Ideal::of(&lab, window(300, 700));
    // h4: a tenth from each of four, and 0.5 from two: 1.4. Fair: h2 and h3 are content with 0.1,
    // the other two share 0.8 and ask for 0.6 each.
    assert_eq!(ideal.hot.len(), 1);
    assert_eq!((ideal.hot[0].node, &ideal.hot[0].senders[..]), (4, &[0, 1][..]));
    assert!((ideal.hot[0].asked - 1.4).abs() < 1e-4, "{ideal:?}");
    assert_eq!(ideal.cold, [0, 1, 2, 3]);
    assert!((ideal.owed - 0.4).abs() < 1e-4);
    // 2048 octets of payload are 2074 on the wire.
    assert!((ideal.on_wire - 2074.0 / 2048.0).abs() < 1e-4);
}

#[test]
fn the_overload_is_found_from_change_to_change() {
    assert_eq!(first_overload(&lab(INCAST)), Some(window(200, 800)));
    let calm = INCAST.replace("load = 0.5", "load = 0.2");
    assert_eq!(first_overload(&lab(&calm)), None);
    // Hot for 400 of 600: 0.4 + 2/3 = 1.07; for 200 of 400: 0.9 in the mean.
    assert!(!Ideal::of(&lab(INCAST), window(400, 1000)).cold.contains(&4));
    assert!(Ideal::of(&lab(INCAST), window(600, 1000)).cold.contains(&4));
}

#[test]
fn the_cases_of_the_hot_spot_paper_owe_what_the_theory_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../topo/scenarios/tune/fat32.toml");
    let text = std::fs::read_to_string(file).expect("it is shipped");
    let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let tune = scenario.tune.clone().expect("it is there");
    let theory = [("1", 0.453, 3), ("2", 0.4194, 31), ("3", 0.8323, 3), ("4", 0.8323, 31)];
    assert_eq!(tune.cases.len(), theory.len());
    for (case, (name, owed, hot_flows)) in tune.cases.iter().zip(theory) {
        let mut scenario = scenario.clone();
        scenario.traffic = case.traffic.clone();
        let lab = render(&scenario);
        assert_eq!(first_overload(&lab), Some(window(2000, 10_000)), "case {name}");
        let ideal = Ideal::of(&lab, window(7000, 10_000));
        assert_eq!((case.name.as_str(), ideal.hot.len(), ideal.cold.len()), (name, 1, 31));
        assert!((ideal.hot[0].asked - 3.0).abs() < 1e-3, "case {name}: {}", ideal.hot[0].asked);
        assert_eq!(ideal.hot[0].senders.len(), hot_flows, "case {name}");
        assert!((ideal.owed - owed).abs() < 5e-4, "case {name}: {}", ideal.owed);
    }
}

#[test]
fn a_fair_division_holds_back_those_who_ask_for_more_than_their_share() {
    assert_eq!(held_back(&[0.0, 0.9, 0.1, 0.9, 0.0]), [1, 3]);
    assert_eq!(held_back(&[0.3, 0.3, 0.3]), [0; 0]);
    assert_eq!(held_back(&[0.5, 0.5, 0.5]), [0, 1, 2]);
}
