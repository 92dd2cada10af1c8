//! Random scenarios over everything that the schema permits and a virtual clock can run.

use crate::accept::{self, Drawn, Refusal};
use crate::draw::{Decorator, Draw};
use crate::{laws, text};
use proto::congestion::schemes;
use proto::params::{Kind, Params};
use proto::technology::Technology;
use scenario::Scenario;
use scenario::frames;
use scenario::keyfile::problem::Problems;
use switchd::memory::models::MODELS;
use switchd::routing::policies::POLICIES;
use toml::{Table, Value};

/// Keys that are not drawn, with the reason.
const LEFT_OUT: [(&str, &str); 25] = [
    ("source", "a text for people"),
    ("say", "a text for people"),
    ("baseline", "a choice of the report"),
    ("figure", "read by the report only"),
    ("phase", "read by the report only"),
    ("measure", "evaluated after the run"),
    ("expect", "evaluated after the run"),
    ("tune", "read by pausebed tune only"),
    ("lab", "devices outside the fabric have the wall clock"),
    ("foreign", "devices outside the fabric have the wall clock"),
    ("serve", "devices outside the fabric have the wall clock"),
    ("host", "devices outside the fabric have the wall clock"),
    ("run", "only seed and duration matter on the virtual clock"),
    ("trace", "written by hand below: its text is a language of its own"),
    ("fabric.links", "written by hand below"),
    ("fabric.nodes", "written by hand below"),
    ("fabric.nodes.ports", "a NIC has one port"),
    ("fabric.route", "a random route leads in a circle or nowhere"),
    ("fabric.multicast", "only a group of a subnet manager sends there"),
    ("fabric.group", "only under a subnet manager, which has the wall clock"),
    ("traffic", "written by hand below"),
    ("traffic.port", "for foreign hosts only"),
    ("traffic.times", "repeats what other items show"),
    ("traffic.every", "repeats what other items show"),
    ("fabric.shape", "written by hand below"),
];

/// The names that keys refer to.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// NICs.
    pub nics: Vec<String>,
    /// Ports with a cable, as node:port.
    pub ports: Vec<String>,
    /// Those of switches.
    pub switch_ports: Vec<String>,
}

/// What a scenario is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Anything.
    Any,
    /// Nothing is random, and all times are whole picoseconds: its twins can be compared.
    Exact,
    /// Senders stop early, and everything is to arrive.
    Drained,
}

impl Aim {
    /// The aim of scenario `seed`.
    pub fn of(seed: u64) -> Aim {
        match seed % 8 {
            1 | 5 => Aim::Exact,
            3 => Aim::Drained,
            _ => Aim::Any,
        }
    }
}

/// Draws the scenario of `seed`.
///
/// # Errors
/// Why validation refuses it.
pub fn scenario(seed: u64) -> Result<Drawn, Refusal> {
    let aim = Aim::of(seed);
    let mut draw = Draw::new(seed, aim == Aim::Exact);
    let technology =
        draw.pick(&[Technology::Infiniband, Technology::Ethernet, Technology::Ethernet]);
    let mut table = skeleton(&mut draw, (technology, aim), seed);
    let names = names(&table).map_err(|problems| problems.to_string())?;
    traffic(&mut draw, &mut table, (technology, aim), &names);
    let duration = draw.duration();
    if aim == Aim::Drained {
        let items = table.get_mut("traffic").and_then(Value::as_array_mut).into_iter().flatten();
        for item in items.filter_map(Value::as_table_mut) {
            item.insert("stop".into(), format!("{duration} ns").into());
        }
    }
    let length = match aim {
        Aim::Drained => duration + laws::drain(technology).as_ps() / 1000,
        _ => duration,
    };
    text::section(&mut table, "run").insert("duration".into(), format!("{length} ns").into());
    let intensity = [0, 5, 15, 40, 90];
    let of_scheme = if aim == Aim::Any { draw.pick(&intensity) } else { 0 };
    let of_fabric = draw.pick(&intensity[..4]);
    let of_faults = if aim == Aim::Any { draw.pick(&[0, 0, 0, 30]) } else { 0 };
    let percent = |path: &str| {
        let root = path.split('.').next().unwrap_or_default();
        match root {
            // Timers that the standard gives codes for do not double, and a MAC table forgets what a test waits for.
            "fabric" if aim == Aim::Exact && path.starts_with("fabric.nic.r") => 0,
            // With load.
            _ if path == "traffic.rate" => 0,
            _ if LEFT_OUT.iter().any(|(key, _)| *key == path) => 0,
            "run" => 0,
            "scheme" => of_scheme,
            "impairment" | "outage" if path == root => of_faults,
            // A chance of each of the rarer tables.
            _ if path == "fabric.nic.storm" || path == "fabric.nic.drain" => of_faults,
            "fabric" => of_fabric,
            _ => 20,
        }
    };
    let mut naming = |draw: &mut Draw, path: &str| named(draw, path, &names, duration);
    let words = Vec::new();
    Decorator { draw: &mut draw, percent: &percent, naming: &mut naming, words }.decorate(
        &mut table,
        &scenario::KEYS,
        "",
    );
    accept::accepted(table)
}

/// Values of keys that refer to parts of the fabric or of the run, or whose whole range would leave nothing to see.
fn named(draw: &mut Draw, path: &str, names: &Names, duration: u64) -> Option<Value> {
    let list = |names: Vec<String>| Value::Array(names.into_iter().map(Value::String).collect());
    let within = |draw: &mut Draw| format!("{} ns", draw.below(duration.max(1)));
    Some(match path {
        "impairment.from" | "outage.at" => list(vec![draw.pick(&names.ports)]),
        "fabric.switch.service.at" | "fabric.switch.cn.ports.at" => {
            list(draw.some(&names.switch_ports))
        }
        "fabric.nic.drain.at" | "fabric.nic.storm.at" => list(vec![draw.pick(&names.nics)]),
        "outage.from" | "outage.to" | "fabric.nic.storm.start" | "fabric.switch.service.start" => {
            within(draw).into()
        }
        "traffic.start" if draw.percent(50) => within(draw).into(),
        "traffic.start" => "0 ns".into(),
        "fabric.switch.service.stop" => format!("{} ns", duration).into(),
        "fabric.uplink" | "fabric.switch.service.rate" | "fabric.nic.drain.receive_rate" => {
            draw.line_rate().into()
        }
        "impairment.by" => format!("{} ns", draw.magnitude(1, 100_000)).into(),
        // A lane beyond those there are, and a frame beyond the MTU, are refused.
        "fabric.frame" => format!("{} B", draw.magnitude(64, 274)).into(),
        // With the whole range of these, buffers would have to hold seconds of line time.
        "fabric.link.response" | "fabric.switch.jitter" => {
            format!("{} ns", draw.magnitude(1, 20_000)).into()
        }
        "fabric.link.overhead" => draw.pick(&["0 B", "20 B", "24 B"]).into(),
        "fabric.switch.buffer" | "fabric.nic.buffer" => {
            format!("{} mtu", draw.magnitude(2, 64)).into()
        }
        _ => return None,
    })
}

/// The words of a key.
fn words<T: Params>(key: &str) -> Vec<&'static str> {
    match T::KEYS.iter().find(|known| known.name == key).map(|key| &key.kind) {
        Some(Kind::Word(words)) => words(),
        _ => Vec::new(),
    }
}

/// Seed, fabric and scheme, without their finer keys.
fn skeleton(draw: &mut Draw, (technology, aim): (Technology, Aim), seed: u64) -> Table {
    let mtu = draw.pick(&[256, 512, 1024, 2048, 4096]);
    let mut link = Table::new();
    link.insert("rate".into(), draw.line_rate().into());
    link.insert("delay".into(), draw.delay().into());
    let fits = |technologies: &[Technology]| technologies.contains(&technology);
    let memories: Vec<&str> =
        MODELS.iter().filter(|model| fits(model.technologies)).map(|m| m.name).collect();
    let mut switch = Table::new();
    switch.insert("memory".into(), draw.pick(&memories).into());
    match technology {
        Technology::Infiniband => {
            link.insert("lanes".into(), draw.pick(&[1, 2, 4, 8, 12]).into());
            link.insert("vls".into(), draw.pick(&[1, 1, 2, 4, 8, 15]).into());
        }
        Technology::Ethernet => {
            let pause = draw.pick(&["pfc", "pfc", "pfc", "pause", "none"]);
            link.insert("pause".into(), pause.into());
            switch.insert("headroom".into(), "0 B".into());
        }
    }
    let mut fabric = Table::new();
    shape(draw, &mut fabric);
    let policies = POLICIES.iter().filter(|policy| policy.fits(technology));
    let policies: Vec<&str> = policies.map(|policy| policy.name).collect();
    // The other policies choose by a hash.
    if draw.percent(50) && aim != Aim::Exact {
        fabric.insert("routing".into(), draw.pick(&policies).into());
    }
    fabric.insert("technology".into(), technology.to_string().into());
    fabric.insert("mtu".into(), format!("{mtu} B").into());
    fabric.insert("link".into(), link.into());
    fabric.insert("switch".into(), switch.into());
    fabric.insert("nic".into(), Table::new().into());
    let kinds = schemes::all().iter().filter(|scheme| fits(scheme.technologies));
    let kinds = kinds.map(|scheme| scheme.name);
    // The other schemes compute rates, which are rounded to whole bits per second.
    let is_exact = |kind: &&str| aim != Aim::Exact || ["none", "ib-cca"].contains(kind);
    let kinds: Vec<&str> = kinds.filter(is_exact).collect();
    let mut scheme = Table::new();
    scheme.insert("kind".into(), draw.pick(&kinds).into());
    let mut run = Table::new();
    run.insert("seed".into(), Value::Integer(draw.whole(0, 1 << 40) as i64));
    run.insert("duration".into(), "1 us".into());
    let mut table = Table::new();
    table.insert("schema".into(), 1.into());
    table.insert("name".into(), format!("law-{seed}").into());
    table.insert("run".into(), run.into());
    table.insert("fabric".into(), fabric.into());
    table.insert("scheme".into(), scheme.into());
    table
}

/// A small fabric: a named shape, or nodes and links of which each has a rate and a delay of its own.
fn shape(draw: &mut Draw, fabric: &mut Table) {
    let shape = match draw.percent(60) {
        true => "listed",
        false => draw.pick(&scenario::shapes::names()),
    };
    let whole = |number: u64| Value::Integer(number as i64);
    match shape {
        "listed" => return listed(draw, fabric),
        "star" => {
            fabric.insert("hosts".into(), whole(draw.whole(2, 12)));
        }
        "leaf-spine" => {
            fabric.insert("leaves".into(), whole(draw.whole(2, 3)));
            fabric.insert("spines".into(), whole(draw.whole(1, 2)));
            fabric.insert("hosts_per_leaf".into(), whole(draw.whole(1, 4)));
            if draw.percent(50) {
                fabric.insert("uplink".into(), draw.line_rate().into());
            }
        }
        "xgft" => {
            let m = vec![whole(draw.whole(2, 4)), whole(draw.whole(2, 3))];
            fabric.insert("m".into(), m.into());
            fabric.insert("w".into(), vec![whole(1), whole(draw.whole(1, 2))].into());
        }
        _ => {}
    }
    fabric.insert("shape".into(), shape.into());
}

/// A tree of one to four switches with two to twelve NICs.
fn listed(draw: &mut Draw, fabric: &mut Table) {
    let switches = draw.whole(1, 4);
    let nics = draw.whole(2, 12);
    let node = |name: String, kind: &str| {
        let entries = [("name".to_owned(), Value::String(name)), ("kind".to_owned(), kind.into())];
        Value::Table(Table::from_iter(entries))
    };
    let all = (0..nics).map(|n| node(format!("h{n}"), "nic"));
    let nodes: Vec<Value> =
        all.chain((0..switches).map(|n| node(format!("s{n}"), "switch"))).collect();
    let mut used = vec![0; switches as usize];
    let mut port = |switch: u64| {
        used[switch as usize] += 1;
        format!("s{switch}:{}", used[switch as usize])
    };
    let one_rate = draw.percent(30).then(|| draw.line_rate());
    let mut links = Vec::new();
    let mut link = |draw: &mut Draw, a: String, b: String| {
        let mut link = Table::new();
        link.insert("a".into(), a.into());
        link.insert("b".into(), b.into());
        link.insert("rate".into(), one_rate.clone().unwrap_or_else(|| draw.line_rate()).into());
        link.insert("delay".into(), draw.delay().into());
        links.push(Value::Table(link));
    };
    for nic in 0..nics {
        let switch = if nic < switches { nic } else { draw.below(switches) };
        let port = port(switch);
        link(draw, format!("h{nic}:1"), port);
    }
    for switch in 1..switches {
        let above = draw.below(switch);
        let cables = if draw.percent(15) { 2 } else { 1 };
        for _ in 0..cables {
            let (a, b) = (port(switch), port(above));
            link(draw, a, b);
        }
    }
    fabric.insert("nodes".into(), nodes.into());
    fabric.insert("links".into(), links.into());
}

/// The names of the fabric's parts.
fn names(table: &Table) -> Result<Names, Problems> {
    let mut fabric = table["fabric"].as_table().cloned().unwrap_or_default();
    // Room and routes are of no interest here, and may not be right yet.
    fabric.insert("link".into(), Table::from_iter([("pause".to_owned(), "none".into())]).into());
    fabric.remove("switch");
    fabric.remove("routing");
    fabric.insert("technology".into(), "ethernet".into());
    let mut bare = table.clone();
    bare.insert("fabric".into(), fabric.into());
    bare.remove("scheme");
    let topology = Scenario::parse(&text::print(&bare), &[])?.fabric.topology;
    let adapters = topology.adapters();
    let mut names = Names::default();
    names.nics.extend(topology.nodes[..adapters].iter().map(|node| node.name.clone()));
    for end in topology.cables.iter().flat_map(|cable| [cable.a, cable.b]) {
        names.ports.push(topology.end_name(end));
        if end.node >= adapters {
            names.switch_ports.push(topology.end_name(end));
        }
    }
    Ok(names)
}

/// One to three items, and sometimes a trace of messages that wait for each other.
fn traffic(
    draw: &mut Draw,
    table: &mut Table,
    (technology, aim): (Technology, Aim),
    names: &Names,
) {
    let mtu = text::octets(&table["fabric"]["mtu"]);
    let mut items = Vec::new();
    for number in 0..draw.whole(1, 3) {
        let mut item = Table::new();
        item.insert("name".into(), format!("t{number}").into());
        ends(draw, &mut item, names, aim);
        let mut transport = transport(draw, technology);
        if aim == Aim::Exact && transport == "test" {
            transport = "uc";
        }
        item.insert("transport".into(), transport.into());
        if draw.percent(80) {
            let frame = mtu + frames::TEST;
            let size = match transport {
                "ud" => draw.pick(&[1, 64, mtu - 1, mtu]),
                "test" => draw.pick(&[64, frame.min(1000), frame]),
                _ => {
                    let most = if aim == Aim::Drained { 8 * mtu } else { 200_000 };
                    let any = draw.magnitude(1, most);
                    draw.pick(&[1, 64, mtu - 1, mtu, mtu + 1, 8 * mtu, any])
                }
            };
            item.insert("size".into(), format!("{size} B").into());
        }
        let arrivals = match aim {
            Aim::Exact => draw.pick(&["paced", "backlog"]),
            _ => draw.pick(&words::<scenario::traffic::Written>("arrivals")),
        };
        item.insert("arrivals".into(), arrivals.into());
        if arrivals != "backlog" {
            let load = draw.pick(&[0.05, 0.3, 0.9, 1.0, 1.3]);
            let load = if aim == Aim::Exact { draw.pick(&[0.25, 0.5, 1.0]) } else { load };
            // One message in each slot at most, and a slot is as long as the message.
            let load = if arrivals == "bernoulli" { f64::min(load, 0.9) } else { load };
            item.insert("load".into(), load.into());
        }
        if draw.percent(70) {
            item.insert("sl".into(), 0.into());
        }
        if draw.percent(85) {
            item.insert("messages".into(), 0.into());
        }
        items.push(item);
    }
    if aim == Aim::Any && draw.percent(15) {
        trace(draw, table, names);
    }
    table.insert("traffic".into(), items.into_iter().map(Value::Table).collect::<Vec<_>>().into());
}

/// Each message waits for one before it that its sender took part in, or begins at once.
fn trace(draw: &mut Draw, table: &mut Table, names: &Names) {
    let ranks = names.nics.len() as u64;
    let mut lines = Vec::new();
    let mut ends: Vec<(u64, u64)> = Vec::new();
    for number in 0..draw.whole(2, 12) {
        let from = draw.below(ranks);
        let to = (from + draw.whole(1, ranks - 1)) % ranks;
        let waits = |(_, (a, b)): &(usize, &(u64, u64))| [*a, *b].contains(&from);
        let when = match ends.iter().enumerate().rfind(waits) {
            Some((other, _)) => format!("after=m{other}"),
            None => format!("at={}ns", draw.below(20_000)),
        };
        lines.push(format!("m{number} {when} {from} {to} {}", draw.magnitude(1, 50_000)));
        ends.push((from, to));
    }
    let mut trace = Table::new();
    trace.insert("name".into(), "steps".into());
    trace.insert("messages".into(), lines.join("\n").into());
    let on = names.nics.iter().cloned().map(Value::String).collect::<Vec<_>>();
    trace.insert("on".into(), on.into());
    trace.insert("transport".into(), draw.pick(&["rc", "uc"]).into());
    table.insert("trace".into(), vec![Value::Table(trace)].into());
}

fn transport(draw: &mut Draw, technology: Technology) -> &'static str {
    let all = words::<scenario::traffic::Written>("transport");
    let fits = all.into_iter().filter(|word| technology == Technology::Ethernet || *word != "test");
    let fits: Vec<&str> = fits.collect();
    if draw.percent(40) { "rc" } else { draw.pick(&fits) }
}

/// Senders and receivers: an incast, a permutation, or any to any.
fn ends(draw: &mut Draw, item: &mut Table, names: &Names, aim: Aim) {
    let mut from = draw.some(&names.nics);
    let kind = if aim == Aim::Exact { 9 } else { draw.below(10) };
    let to: Value = match kind {
        0 | 1 => "uniform".into(),
        2 if from.len() > 1 => "permutation".into(),
        3 | 4 if names.nics.len() > 2 => {
            let two = [draw.pick(&names.nics), draw.pick(&names.nics)];
            item.insert("choice".into(), draw.pick(&["any", "dealt"]).into());
            Value::Array(two.into_iter().map(Value::String).collect())
        }
        _ => {
            let to = draw.pick(&names.nics);
            from.retain(|nic| *nic != to);
            if from.is_empty() {
                from = names.nics.iter().filter(|nic| **nic != to).take(1).cloned().collect();
            }
            to.into()
        }
    };
    item.insert("from".into(), Value::Array(from.into_iter().map(Value::String).collect()));
    item.insert("to".into(), to);
}
