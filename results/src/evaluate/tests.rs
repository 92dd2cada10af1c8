//! Each quantity on hand-made readings, with the arithmetic beside it.

use super::*;
use crate::verdict::{Verdict, judge};
use emulation::recorder::EdgeReading;
use emulation::recorder::bins::Grid;
use emulation::recorder::event_log::RecordedEvents;
use emulation::wiring::{LinkWiring, NodeKind, NodeWiring, Wiring};
use proto::counters::{
    FlowId, FlowReading, Gauge, LaneCounters, LaneReading, LatencyReading, Level,
};
use proto::device::Depth;
use proto::ids::PortNumber;
use proto::units::{BitRate, Bytes, Duration};
use scenario::measure::Expectation;
use scenario::measure::windows::{edges_of, windows_of};

const TAU: u64 = 1_000;

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

fn end(node: usize) -> End {
    End { node, port: PortNumber::from_index(0) }
}

/// Two adapters on one cable of 8 Gb/s (an octet a nanosecond), τ = 1 ns, a frame is 100 octets.
fn fabric() -> Fabric {
    let node =
        |name: &str| NodeWiring { name: name.to_owned(), kind: NodeKind::Nic, ports: 1, level: 0 };
    let link = LinkWiring {
        a: end(0),
        b: end(1),
        delay: Duration::ZERO,
        frame_time: Duration::from_ps(TAU),
    };
    Fabric {
        wiring: Wiring {
            nodes: vec![node("h0"), node("h1")],
            links: vec![link],
            ..Wiring::default()
        },
        rates: vec![BitRate::gbps(8)],
        attached_rates: Vec::new(),
        nominal_rates: Vec::new(),
        technology: proto::technology::Technology::Infiniband,
        tau: Duration::from_ps(TAU),
        full_frame: Bytes::new(100),
        addresses: vec![1, 2],
        traffic: vec!["all".to_owned()],
        replays: Default::default(),
        items: vec![vec![0], vec![]],
        lanes: vec![0],
        lossless: u16::MAX,
        protected: u16::MAX,
        hosts: Vec::new(),
    }
}

fn measure(of: Quantity, at_ports: At) -> Measure {
    Measure {
        name: "m".to_owned(),
        of,
        at: at_ports,
        named: Vec::new(),
        from: at(1_000),
        to: at(3_000),
        items: Vec::new(),
        repeat: None,
        except: Vec::new(),
        bin: None,
        before: None,
        level_permille: 950,
        reduce: Reduce::Mean,
        per: Per::One,
    }
}

fn h0(direction: Direction) -> At {
    At::Ports(vec![(end(0), direction)])
}

fn h0_to_h1() -> At {
    At::Flows(vec![(0, 1)])
}

/// A reading of one lane; the rest is filled in by the test.
fn reading(lane: LaneCounters) -> DeviceReading {
    let lanes = vec![LaneReading { tc: 0, counters: lane }];
    DeviceReading {
        ports: vec![PortReading { lanes, ..PortReading::default() }],
        ..DeviceReading::default()
    }
}

fn flow() -> FlowReading {
    let id = FlowId { source: 1, destination: 2, class: 0 };
    FlowReading { neutral_since: Some(Instant::ZERO), ..FlowReading::new(id) }
}

/// A recording with a reading of node 0 at each edge, taken `late` after it; node 1 is another
/// worker's, on time, and counts nothing.
fn recordings(late: u64, at_edges: &[(u64, DeviceReading)]) -> Vec<Recording> {
    let empty = |node: usize| Recording {
        nodes: vec![node],
        stopped: at(10_000),
        edges: vec![],
        last: vec![],
        grid: Grid::new(Duration::from_ps(TAU)),
        ports: vec![],
        flows: vec![],
        pools: vec![],
        events: RecordedEvents::default(),
        holds: Default::default(),
        capture: None,
    };
    let edges =
        |late: u64, reading: &dyn Fn(&DeviceReading) -> DeviceReading| -> Vec<EdgeReading> {
            at_edges
                .iter()
                .map(|(edge, of_h0)| EdgeReading {
                    edge: at(*edge),
                    taken: at(edge + late),
                    devices: vec![reading(of_h0)],
                })
                .collect()
        };
    let mut first = empty(0);
    first.edges = edges(late, &DeviceReading::clone);
    let mut second = empty(1);
    second.edges = edges(0, &|_| reading(LaneCounters::default()));
    vec![second, first]
}

/// When readings are kept for it.
fn instants(measure: &Measure) -> Vec<Instant> {
    edges_of(std::slice::from_ref(measure)).into_iter().map(|edge| edge.at).collect()
}

fn value(measure: &Measure, at_edges: &[(u64, DeviceReading)]) -> Result<f64, String> {
    let value = evaluate(measure, &RunData::new(&fabric(), &recordings(0, at_edges)))?;
    Ok(value.number().expect("this measure gives a number"))
}

fn sent(tx_bytes: u64) -> DeviceReading {
    reading(LaneCounters { tx_bytes, rx_bytes: 2 * tx_bytes, ..LaneCounters::default() })
}

#[test]
fn throughput_is_octets_over_the_window() {
    let edges = [(1_000, sent(10)), (3_000, sent(11))];
    let mut m = measure(Quantity::Throughput, h0(Direction::Tx));
    assert_eq!(value(&m, &edges), Ok(4e9), "8 bit in 2 ns");
    m.per = Per::Line;
    assert_eq!(value(&m, &edges), Ok(0.5), "4 Gb/s of 8 Gb/s");
    m.at = h0(Direction::Rx);
    assert_eq!(value(&m, &edges), Ok(1.0), "twice as much came in");
    m.per = Per::Mtu;
    assert!(value(&m, &edges).is_err());
}

#[test]
fn throughput_uses_the_instants_at_which_readings_were_really_taken() {
    let mut runs = recordings(500, &[(1_000, sent(10)), (3_000, sent(12))]);
    runs[1].edges[1].taken = at(4_500);
    let m = Measure { per: Per::Line, ..measure(Quantity::Throughput, h0(Direction::Tx)) };
    let found = evaluate(&m, &RunData::new(&fabric(), &runs));
    assert_eq!(found, Ok((2.0 / 3.0).into()), "2 octets from 1.5 ns to 4.5 ns");
}

#[test]
fn what_is_excepted_counts_neither_in_octets_nor_in_time() {
    let edges = [(1_000, sent(10)), (1_500, sent(11)), (2_500, sent(900)), (3_000, sent(900))];
    let mut m = measure(Quantity::Throughput, h0(Direction::Tx));
    m.except = vec![(at(1_500), at(2_500))];
    m.per = Per::Line;
    assert_eq!(value(&m, &edges), Ok(1.0), "1 octet in 0.5 + 0.5 ns");
    assert_eq!(instants(&m), [1_000, 1_500, 2_500, 3_000].map(at));
    assert_eq!(windows_of(&[m]), [(at(1_000), at(1_500)), (at(2_500), at(3_000))]);
}

#[test]
fn with_a_bin_each_whole_bin_is_a_value() {
    let edges = [(1_000, sent(0)), (1_800, sent(8)), (2_600, sent(12))];
    let mut m = measure(Quantity::Throughput, h0(Direction::Tx));
    m.bin = Some(Duration::from_ps(800));
    m.per = Per::Line;
    let with = |reduce| value(&Measure { reduce, ..m.clone() }, &edges);
    assert_eq!(with(Reduce::Max), Ok(10.0), "8 octets in 0.8 ns");
    assert_eq!(
        with(Reduce::Min),
        Ok(5.0),
        "4 octets in 0.8 ns; the rest of the window is not a bin"
    );
    assert_eq!(with(Reduce::Mean), Ok(7.5));
    assert_eq!(with(Reduce::Sd), Ok(2.5));
    assert_eq!(with(Reduce::P50), Ok(5.0));
    assert_eq!(with(Reduce::P99), Ok(10.0));
    assert_eq!(with(Reduce::Sum), Ok(15.0));
}

#[test]
fn a_queue_is_its_integral_over_the_window() {
    let queue = |integral| {
        let out_queue = Gauge { integral, ..Gauge::default() };
        reading(LaneCounters { out_queue, ..LaneCounters::default() })
    };
    let edges = [(1_000, queue(50_000)), (3_000, queue(650_000))];
    let mut m = measure(Quantity::Queue, h0(Direction::Tx));
    assert_eq!(value(&m, &edges), Ok(300.0), "600 000 octet·ps in 2 000 ps");
    m.per = Per::Mtu;
    assert_eq!(value(&m, &edges), Ok(3.0), "a frame is 100 octets");
}

#[test]
fn counts_grow_and_holds_are_times() {
    let counted =
        |marks, hold_ps| reading(LaneCounters { marks, hold_ps, ..LaneCounters::default() });
    let edges = [(1_000, counted(5, 100)), (3_000, counted(12, 1_600))];
    let of = |counter| measure(Quantity::Count(counter), h0(Direction::Tx));
    assert_eq!(value(&of(Counter::Marks), &edges), Ok(7.0));
    assert_eq!(value(&of(Counter::Drops), &edges), Ok(0.0));
    let hold = Measure { per: Per::Mtu, ..of(Counter::Hold) };
    assert_eq!(value(&hold, &edges), Ok(1.5), "1 500 ps of 1 000 ps each");
    assert_eq!(value(&of(Counter::Hold), &edges), Ok(1.5e-9));
}

#[test]
fn latency_counts_only_what_arrived_in_the_window() {
    let arrived = |latencies: &[u64]| {
        let mut histogram = LatencyReading::default();
        latencies.iter().for_each(|ns| histogram.count(Duration::from_ns(*ns)));
        DeviceReading { latencies: vec![histogram], ..reading(LaneCounters::default()) }
    };
    let edges = [(1_000, arrived(&[1_000_000])), (3_000, arrived(&[1_000_000, 10, 20, 24, 26]))];
    let with = |reduce| {
        let m = Measure { reduce, per: Per::Mtu, ..measure(Quantity::Latency, At::Nodes(vec![0])) };
        value(&m, &edges)
    };
    assert_eq!(with(Reduce::Mean), Ok(20.0), "(10 + 20 + 24 + 26) / 4 ns, τ is 1 ns");
    assert_eq!(with(Reduce::P50), Ok(20.0), "the second of four");
    assert_eq!(with(Reduce::P99), Ok(26.0));
    assert_eq!(with(Reduce::Min), Ok(10.0));
    assert_eq!(with(Reduce::Sum), Ok(80.0));
    // Squares from 20: 100, 0, 16, 36; their mean is 38.
    assert_eq!(with(Reduce::Sd), Ok(38f64.sqrt()));
    let none = [(1_000, arrived(&[5])), (3_000, arrived(&[5]))];
    let m = measure(Quantity::Latency, At::Nodes(vec![0]));
    assert_eq!(value(&m, &none), Err("no message arrived".to_owned()));
}

#[test]
fn a_gap_is_weighed_by_time_and_its_spread_pools_time_and_flows() {
    // Gap 0 for 1 000 ps, then 30 000 ps for 1 000 ps: mean 15 τ, deviation 15 τ.
    let gap = |integral, square_integral| {
        let gap = Level { integral, square_integral, ..Level::default() };
        DeviceReading {
            flows: vec![FlowReading { gap, ..flow() }],
            ..reading(LaneCounters::default())
        }
    };
    let held = 30_000u128 * 1_000;
    let edges = [(1_000, gap(77, 77)), (3_000, gap(77 + held, 77 + held * 30_000))];
    let mut m = Measure { per: Per::Mtu, ..measure(Quantity::Ipd, h0_to_h1()) };
    assert_eq!(value(&m, &edges), Ok(15.0));
    m.reduce = Reduce::Sd;
    assert_eq!(value(&m, &edges), Ok(15.0));
    let mut began_later = edges.clone();
    began_later[0].1.flows.clear();
    m.reduce = Reduce::Mean;
    assert_eq!(value(&m, &began_later), Ok((77.0 + held as f64) / 2_000.0 / 1_000.0));
    m.at = At::Flows(vec![(1, 0)]);
    assert_eq!(value(&m, &edges), Err("none of these flows ever sent".to_owned()));
}

#[test]
fn a_rate_is_weighed_by_time_and_must_be_known_throughout() {
    let rate = |integral| {
        let rate = Level { integral, ..Level::default() };
        DeviceReading {
            flows: vec![FlowReading { rate, ..flow() }],
            ..reading(LaneCounters::default())
        }
    };
    let edges = [(1_000, rate(0)), (3_000, rate(4_000_000_000 * 2_000))];
    let mut m = measure(Quantity::Rate, h0_to_h1());
    assert_eq!(value(&m, &edges), Ok(4e9));
    m.per = Per::Line;
    assert_eq!(value(&m, &edges), Ok(0.5));
    let mut began_later = edges.clone();
    began_later[0].1.flows.clear();
    let why = value(&m, &began_later).expect_err("its rate before is unknown");
    assert!(why.contains("h0>h1"), "{why}");
}

fn recovery_measure() -> Measure {
    Measure {
        before: Some((at(0), at(1_000))),
        bin: Some(Duration::from_ps(1_000)),
        to: at(5_500),
        per: Per::Mtu,
        ..measure(Quantity::Recovery, h0(Direction::Tx))
    }
}

/// Edges each nanosecond with these octets in each bin between them.
fn steps(octets: &[u64]) -> Vec<(u64, DeviceReading)> {
    let mut sum = 0;
    let ends = octets.iter().enumerate().map(|(n, octets)| {
        sum += octets;
        (1_000 * (n as u64 + 1), sent(sum))
    });
    [(0, sent(0))].into_iter().chain(ends).collect()
}

#[test]
fn recovery_is_the_time_after_which_the_level_holds_for_good() {
    let m = recovery_measure();
    assert_eq!(instants(&m), [0, 1_000, 2_000, 3_000, 4_000, 5_000].map(at));
    // Before: 100. Bins: 30, 96, 40, 95; 95 ≥ 0.95 · 100 holds from 3 τ on.
    assert_eq!(value(&m, &steps(&[100, 30, 96, 40, 95])), Ok(3.0));
    assert_eq!(value(&m, &steps(&[100, 95, 96, 99, 95])), Ok(0.0), "it never fell");
    let never = value(&m, &steps(&[100, 99, 99, 99, 94]));
    assert!(never.expect_err("the last bin is below").contains("never came back"));
    let m = Measure { before: None, ..m };
    assert!(value(&m, &steps(&[1, 1, 1, 1, 1])).is_err());
}

#[test]
fn release_is_when_the_last_reaction_point_became_neutral() {
    let since = |neutral_since| {
        let flows = vec![FlowReading { neutral_since, ..flow() }];
        DeviceReading { flows, ..reading(LaneCounters::default()) }
    };
    let edges = |neutral: Option<u64>| [(1_000, since(None)), (3_000, since(neutral.map(at)))];
    let m = Measure { per: Per::Mtu, ..measure(Quantity::Release, h0_to_h1()) };
    assert_eq!(value(&m, &edges(Some(2_500))), Ok(1.5), "2.5 ns − 1 ns");
    assert_eq!(value(&m, &edges(Some(200))), Ok(0.0), "before the window");
    assert_eq!(value(&m, &edges(None)), Err("h0>h1 is still held back".to_owned()));
}

#[test]
fn completion_is_a_share_of_what_was_posted() {
    let done = |messages, completed| {
        let flows = vec![FlowReading { messages, completed, ..flow() }];
        DeviceReading { flows, ..reading(LaneCounters::default()) }
    };
    let m = measure(Quantity::Completion, h0_to_h1());
    assert_eq!(value(&m, &[(1_000, done(4, 0)), (3_000, done(8, 6))]), Ok(0.75));
    let nothing = value(&m, &[(1_000, done(0, 0)), (3_000, done(0, 0))]);
    assert_eq!(nothing, Err("nothing was posted".to_owned()));
}

#[test]
fn an_edge_that_was_never_reached_is_a_reason_not_a_number() {
    let m = measure(Quantity::Throughput, h0(Direction::Tx));
    let why = value(&m, &[(1_000, sent(1))]).expect_err("no second edge");
    assert_eq!(why, "no reading of h0 at 3 ns: the run ended before");
    let m = Measure { to: at(1_000), ..m };
    assert_eq!(value(&m, &[]), Err("its window is empty".to_owned()));
}

#[test]
fn windows_of_several_measures_merge() {
    let m = measure(Quantity::Queue, h0(Direction::Tx));
    let later = Measure { from: at(2_000), to: at(4_000), ..m.clone() };
    let apart =
        Measure { from: at(6_000), to: at(7_000), before: Some((at(0), at(500))), ..m.clone() };
    let windows = windows_of(&[apart, m, later]);
    assert_eq!(windows, [(0, 500), (1_000, 4_000), (6_000, 7_000)].map(|(a, b)| (at(a), at(b))));
}

#[test]
fn bounds_include_their_ends_and_no_value_fails() {
    let expect = |measure: &str, min, max| Expectation {
        measure: measure.to_owned(),
        min,
        max,
        theory: None,
        order: None,
        why: "because".to_owned(),
        line: 12,
    };
    let expectations = [
        expect("a", Some(0.8), None),
        expect("a", None, Some(0.79)),
        expect("b", Some(0.0), Some(1.0)),
    ];
    let measures = [("a".to_owned(), Ok(0.8.into())), ("b".to_owned(), Err("why".to_owned()))];
    let judged = judge(&expectations, &measures);
    let verdicts: Vec<_> = judged.iter().map(|judged| judged.verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Fail, Verdict::Fail]);
    assert_eq!((&judged[2].value, judged[2].line), (&None, 12));
}

#[test]
fn an_edge_is_read_as_deep_as_the_measure_that_wants_most() {
    let ports = measure(Quantity::Throughput, At::Ports(vec![]));
    let flows =
        Measure { from: ports.to, to: at(9_000), ..measure(Quantity::Ipd, At::Flows(vec![])) };
    let depths = |measures: &[Measure]| -> Vec<Depth> {
        edges_of(measures).into_iter().map(|edge| edge.depth).collect()
    };
    assert_eq!(depths(std::slice::from_ref(&ports)), [Depth::Ports; 2]);
    let both = [Depth::Ports, Depth::All, Depth::All];
    assert_eq!(depths(&[ports.clone(), flows.clone()]), both);
    assert_eq!(depths(&[flows, ports]), both);
    let named = measure(Quantity::Count(Counter::Pauses), At::Ports(vec![]));
    assert_eq!(depths(&[named]), [Depth::Received; 2], "operators' names are not read with ports");
}

#[test]
fn a_number_is_taken_from_what_the_command_of_a_host_printed() {
    let m = Measure {
        named: vec!["v1".to_owned()],
        ..measure(Quantity::Output, At::Output(1, "([0-9.]+) Mb/s".to_owned()))
    };
    let fabric = fabric();
    let with = |outputs: &[Option<String>]| {
        evaluate(&m, &RunData::new(&fabric, &[]).with_outputs(outputs))
    };
    let printed = |text: &str| [None, Some(text.to_owned())];
    assert_eq!(with(&printed("write 12.5 Mb/s, 13 Mb/s")), Ok(Value::Number(12.5)));
    assert!(with(&printed("nothing")).is_err_and(|why| why.contains("no match")));
    assert_eq!(with(&[]), Err("v1 ran nothing".to_owned()));
}
