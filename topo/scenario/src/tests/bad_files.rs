//! Files with faults: all told together, each with its place and a hint.

use super::*;
use crate::settings::Origin;

fn told(text: &str) -> String {
    let problems = Scenario::parse(text, &[]).expect_err("it is full of faults");
    problems.in_file("bad.toml")
}

/// The golden file: whoever changes a message sees here what a user would.
#[test]
fn every_fault_of_a_bad_file_is_told_with_line_column_and_hint() {
    let told = told(include_str!("bad.toml"));
    assert_eq!(told, include_str!("bad.txt"), "\n{told}");
    assert!(told.matches("\n    hint: ").count() >= 12);
}

#[test]
fn a_file_that_is_no_toml_says_where() {
    assert!(told("schema = 1\nname = no quotes\n").starts_with("bad.toml:2:8: file: "));
    assert!(told("schema = 1\nschema = 1\n").starts_with("bad.toml:2:1: file: "));
}

#[test]
fn an_empty_file_misses_what_is_required() {
    let told = told("");
    for key in ["schema", "name", "run", "fabric"] {
        assert!(told.contains(&format!("1:1: {key}: \"{key}\" is missing")), "{told}");
    }
}

/// A star of two and a line between two switches that nobody laid.
fn fabric(rest: &str) -> String {
    format!(
        "schema = 1\nname = \"x\"\nrun = {{ duration = \"1 us\" }}\n[fabric]\nnodes = [\n\
         {{ name = \"h0\", kind = \"nic\" }}, {{ name = \"h1\", kind = \"nic\" }},\n\
         {{ name = \"s0\", kind = \"switch\" }}, {{ name = \"s1\", kind = \"switch\" }},\n]\n{rest}"
    )
}

#[test]
fn pairs_without_a_way_are_told_once_a_cause() {
    let told =
        told(&fabric("links = [{ a = \"h0:1\", b = \"s0:1\" }, { a = \"h1:1\", b = \"s1:1\" }]\n"));
    assert_eq!(
        told,
        "\
bad.toml:4:1: fabric.route: h0 cannot reach h1: s0 has no route for LID 2
    hint: a link is missing, or a [[fabric.route]]
bad.toml:4:1: fabric.route: h1 cannot reach h0: s1 has no route for LID 1
    hint: a link is missing, or a [[fabric.route]]
"
    );
}

#[test]
fn a_route_that_leads_in_a_circle_is_refused() {
    let links = "links = [{ a = \"h0:1\", b = \"s0:1\" }, { a = \"h1:1\", b = \"s1:1\" },\n\
        { a = \"s0:2\", b = \"s1:2\" }]\n";
    assert!(Scenario::parse(&fabric(links), &[]).is_ok());
    let route = "[[fabric.route]]\nat = \"s1\"\nto = \"h1\"\nport = 2\n";
    let told = told(&fabric(&format!("{links}{route}")));
    assert!(told.contains("h0 cannot reach h1"), "{told}");
    assert!(told.contains("lead in a circle through s0, by h0:1 → s0:2 → s1:2"), "{told}");
}

/// Three switches in a ring, with a host each; routes by preference among two ways round.
#[test]
fn routes_by_preference_that_lead_back_or_nowhere_are_refused_with_their_way() {
    let mut text = String::from(
        "schema = 1\nname = \"ring\"\nrun = { duration = \"1 us\" }\n[fabric]\n\
         technology = \"ethernet\"\nrouting = \"adaptive\"\nlink = { pause = \"none\" }\nnodes = [\n",
    );
    for node in 0..3 {
        text += &format!("{{ name = \"h{node}\", kind = \"nic\" }},\n");
        text += &format!("{{ name = \"s{node}\", kind = \"switch\", ports = 4 }},\n");
    }
    text += "]\nlinks = [\n";
    for node in 0..3 {
        let next = (node + 1) % 3;
        text += &format!("{{ a = \"h{node}:1\", b = \"s{node}:1\" }},\n");
        text += &format!("{{ a = \"s{node}:2\", b = \"s{next}:3\" }},\n");
    }
    text += "]\n";
    let route = |at: usize, ports: &str| {
        format!("[[fabric.route]]\nat = \"s{at}\"\nto = \"h0\"\nports = {ports}\n")
    };
    let detour = format!("{text}{}", route(1, "[3, 2]"));
    assert!(Scenario::parse(&detour, &[]).is_ok(), "a longer way is a way");
    let back = told(&format!("{detour}{}", route(2, "[2, 3]")));
    assert!(back.contains("h1 cannot reach h0"), "{back}");
    assert!(back.contains("lead in a circle through s1, by h1:1 → s1:2 → s2:3"), "{back}");
    let nowhere = told(&format!("{text}{}", route(1, "[3, 4]")));
    assert!(nowhere.contains("s1 has no cable at port 4"), "{nowhere}");
    let both = told(&format!("{text}{}port = 2\n", route(1, "[3, 2]")));
    assert!(both.contains("exactly one of them"), "{both}");
}

#[test]
fn routes_that_could_deadlock_are_a_warning_in_a_listed_fabric() {
    let mut text = String::from(
        "schema = 1\nname = \"ring\"\nrun = { duration = \"1 us\" }\n[fabric]\nnodes = [\n",
    );
    for node in 0..3 {
        text += &format!("{{ name = \"h{node}\", kind = \"nic\" }},\n");
        text += &format!("{{ name = \"s{node}\", kind = \"switch\" }},\n");
    }
    text += "]\nlinks = [\n";
    for node in 0..3 {
        let next = (node + 1) % 3;
        text += &format!("{{ a = \"h{node}:1\", b = \"s{node}:1\" }},\n");
        text += &format!("{{ a = \"s{node}:2\", b = \"s{next}:3\" }},\n");
    }
    text += "]\n";
    for node in 0..3 {
        let to = format!("[\"h{}\", \"h{}\"]", (node + 1) % 3, (node + 2) % 3);
        text += &format!("[[fabric.route]]\nat = \"s{node}\"\nto = {to}\nport = 2\n");
    }
    let scenario = Scenario::parse(&text, &[]).expect("it may be meant");
    assert_eq!(scenario.warnings.len(), 1);
    assert!(scenario.warnings[0].message.contains("s0:2 → s1:2 → s2:2"), "{:?}", scenario.warnings);
}

/// Found by random scenarios: what a NIC refuses was accepted on InfiniBand, and ended the run at its start.
#[test]
fn what_a_nic_refuses_is_told_on_both_technologies() {
    for technology in ["infiniband", "ethernet"] {
        let text = format!(
            "schema = 1\nname = \"x\"\nrun = {{ duration = \"1 us\" }}\n[fabric]\nshape = \"star\"\nhosts = 2\n\
             technology = \"{technology}\"\nlink = {{ {} }}\n[[traffic]]\nname = \"t\"\nfrom = \"h0\"\nto = \"h1\"\n\
             arrivals = \"bernoulli\"\nload = 1.3\n",
            if technology == "ethernet" { "pause = \"none\"" } else { "" }
        );
        assert!(told(&text).contains("at most one message per slot"), "{}", told(&text));
    }
}

/// Found by random scenarios: headroom for frames of 115 octets was overrun by frames of 2110.
#[test]
fn messages_are_not_longer_than_the_frame_of_the_fabric() {
    let text = |frame: u64, rest: &str| {
        format!(
            "schema = 1\nname = \"x\"\nrun = {{ duration = \"1 us\" }}\n[fabric]\nshape = \"star\"\nhosts = 2\n\
             technology = \"ethernet\"\nframe = \"{frame} B\"\nlink = {{ pause = \"none\" }}\n{rest}"
        )
    };
    let item =
        "[[traffic]]\nname = \"t\"\nfrom = \"h0\"\nto = \"h1\"\nload = 0.5\nsize = \"100 B\"\n";
    assert!(Scenario::parse(&text(162, item), &[]).is_ok());
    let long = told(&text(161, item));
    assert!(
        long.contains("traffic.t.size: frames of 162 B, longer than fabric.frame = \"161 B\""),
        "{long}"
    );
    let trace = "[[trace]]\nname = \"t\"\nmessages = \"a at=0us 0 1 5000\"\n";
    assert!(told(&text(2066, trace)).contains("trace.t.transport: frames of 2110 B"));
}

#[test]
fn shapes_refuse_what_cannot_be_built() {
    let xgft = |rest: &str| {
        told(&format!(
            "schema = 1\nname = \"x\"\nrun = {{ duration = \"1 us\" }}\n[fabric]\nshape = \"xgft\"\n{rest}"
        ))
    };
    assert!(xgft("m = [4, 8]\nw = [1]\n").contains("one number a level each"));
    assert!(xgft("m = [253, 253]\nw = [1, 253]\n").contains("LIDs"));
    assert!(xgft("m = [200, 2]\nw = [1, 100]\n").contains("more than 254 ports"));
    assert!(xgft("net = \"pfister-23\"\n").contains("did you mean \"pfister-32\"?"));
    assert!(xgft("net = \"pfister-32\"\nhosts = 4\n").contains("it belongs to shape = \"star\""));
}

/// Each line of a good file and of the bad one taken away, cut short, or given another value.
#[test]
fn no_damage_to_a_file_makes_reading_it_panic() {
    let files = [
        shipped_text("pfister/eight-ib-cca.toml"),
        shipped_text("replay/one-switch.toml"),
        shipped_text("dcqcn/storm-watchdog.toml"),
        include_str!("bad.toml").to_owned(),
    ];
    let values =
        ["0", "-1", "\"\"", "\"0 mtu\"", "[]", "{}", "[[1], 2]", "nan", "\"\u{b1}\"", "99999"];
    let mut faults = 0;
    for text in &files {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let (before, after) = (lines[..number].join("\n"), lines[number + 1..].join("\n"));
            let half: String = line.chars().take(line.chars().count() / 2).collect();
            let key = line.split_once('=').map_or("", |(key, _)| key);
            let changed = values.iter().map(|value| format!("{key}= {value}"));
            for damaged in changed.chain([String::new(), half]) {
                let damaged = format!("{before}\n{damaged}\n{after}");
                match Scenario::parse(&damaged, &[]) {
                    Ok(scenario) => drop(crate::render::render(&scenario)),
                    Err(problems) => faults += problems.iter().count(),
                }
            }
        }
    }
    assert!(faults > 1000, "{faults}");
}

/// A star of four on Ethernet with these tables beside it.
fn ethernet(rest: &str) -> String {
    format!(
        "schema = 1\nname = \"x\"\nrun = {{ duration = \"1 us\" }}\n[fabric]\n\
         technology = \"ethernet\"\nshape = \"star\"\nhosts = 4\nmtu = \"1024 B\"\n{rest}\n"
    )
}

#[test]
fn a_key_of_the_other_technology_is_refused_with_the_name_of_its_own() {
    let told = told(&ethernet("link = { vls = 2 }\nswitch = { headroom = \"8 KB\" }"));
    assert_eq!(
        told,
        "bad.toml:9:10: fabric.link.vls: unknown key \"vls\"\n    \
         hint: it belongs to technology = \"infiniband\", here technology = \"ethernet\"\n"
    );
    let told = self::told(&fabric(
        "links = [{ a = \"h0:1\", b = \"s0:1\" }, { a = \"h1:1\", b = \"s0:2\" }]\n\
         nic = { roce = \"v2-ipv4\" }\nrouting = \"ecmp\"\n",
    ));
    assert!(told.contains("fabric.nic.roce: unknown key"), "{told}");
    assert!(told.contains("it belongs to technology = \"ethernet\""), "{told}");
    assert!(told.contains("fabric.routing: a forwarding table of InfiniBand"), "{told}");
}

#[test]
fn pairs_that_cannot_work_are_refused_with_what_would_fit() {
    let scheme = |kind: &str| format!("[scheme]\nkind = \"{kind}\"");
    let ib_cca = told(&ethernet(&scheme("ib-cca")));
    assert_eq!(
        ib_cca,
        "bad.toml:10:8: scheme.kind: \"ib-cca\" does not work on ethernet\n    \
         hint: one of none, dcqcn, bcn, qcn\n"
    );
    let two = "links = [{ a = \"h0:1\", b = \"s0:1\" }, { a = \"h1:1\", b = \"s0:2\" }]\n";
    for kind in ["dcqcn", "bcn", "qcn"] {
        let told = told(&fabric(&format!("{two}{}", scheme(kind))));
        assert!(told.contains(&format!("\"{kind}\" does not work on infiniband")), "{told}");
        assert!(told.contains("hint: one of none, ib-cca, rr-cc"), "{told}");
    }
    let memory = told(&fabric(&format!("{two}switch = {{ memory = \"global-watermark\" }}\n")));
    assert!(memory.contains("does not work on infiniband"), "{memory}");
    assert!(memory.contains("hint: one of per-input"), "{memory}");
    let pool = told(&ethernet("switch = { headroom = \"80 KB\", pool = { reserve = \"0 B\" } }"));
    assert!(pool.contains("it belongs to memory = \"shared-pool\", here memory = \"per-input\""));
    let idle = told(&ethernet("switch = { headroom = \"80 KB\", adaptive = { absorb = true } }"));
    assert!(idle.contains("it belongs to routing = \"adaptive\", here routing = \"d-mod-k\""));
    let sized = "switch = { memory = \"shared-pool\", headroom = \"80 KB\", buffer = \"1 MB\" }";
    assert!(told(&ethernet(sized)).contains("memory = \"shared-pool\" has one size for all ports"));
}

#[test]
fn a_key_without_effect_is_a_warning() {
    let warnings = |rest: &str| -> Vec<String> {
        let scenario = Scenario::parse(&ethernet(rest), &[]).expect("it is legal");
        scenario.warnings.iter().map(ToString::to_string).collect()
    };
    let switch = "switch = { headroom = \"80 KB\", buffer = \"1 MB\" }\n[scheme]\n";
    assert_eq!(warnings(&format!("{switch}kind = \"dcqcn\"\ncut_period = \"4 us\"")).len(), 1);
    let profile = "kind = \"dcqcn\"\nprofile = \"cx\"\ncut_period = \"4 us\"";
    assert_eq!(warnings(&format!("{switch}{profile}")), [""; 0], "this profile cuts by periods");
    let sampling = warnings(&format!("{switch}kind = \"bcn\"\nsample_octets = \"9 KB\""));
    assert_eq!(
        sampling,
        ["12:1: scheme.sample_octets: it has no effect here\n    hint: it needs sampling = octets"]
    );
}

#[test]
fn keys_of_pauses_have_no_effect_without_pauses() {
    let idle = |rest: &str| -> Vec<String> {
        let scenario = Scenario::parse(&ethernet(rest), &[]).expect("it is legal");
        let warnings = scenario.warnings.iter();
        warnings.map(|warning| format!("{}: {}", warning.path, warning.hint)).collect()
    };
    let switch = "switch = { headroom = \"80 KB\", jitter = \"1 us\", buffer = \"1 MB\" }";
    let link = "response = \"1 us\", pause_time = 9, refresh = 9, lossless = [3], obeyed = [3]";
    let with = |pause: &str| idle(&format!("link = {{ pause = \"{pause}\", {link} }}\n{switch}"));
    assert_eq!(
        with("none"),
        [
            "fabric.link.response: it needs pause other than none",
            "fabric.link.pause_time: it needs pause other than none",
            "fabric.link.refresh: it needs pause other than none",
            "fabric.link.obeyed: it needs pause = pfc",
            "fabric.switch.headroom: it needs link.pause other than none",
            "fabric.switch.jitter: it needs link.pause other than none",
        ]
    );
    let global = ["lossless: it needs pause other than pause", "obeyed: it needs pause = pfc"];
    assert_eq!(with("pause"), global.map(|warning| format!("fabric.link.{warning}")));
    assert_eq!(with("pfc"), [""; 0]);
}

#[test]
fn keys_of_other_quantities_have_no_effect_on_a_measure() {
    let measure = "switch = { headroom = \"80 KB\", buffer = \"1 MB\" }\n[[measure]]\nname = \"m\"\n\
                   of = \"latency\"\nat = \"h1\"\nbin = \"10 ns\"\nlevel = 0.5\n";
    let scenario = Scenario::parse(&ethernet(measure), &[]).expect("it is legal");
    let warnings: Vec<String> = scenario.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "14:7: measure.m.bin: latency has no bins\n    hint: leave it out",
            "15:1: measure.m.level: it has no effect here\n    hint: it needs of = recovery",
        ]
    );
}

/// Found by random scenarios: two switches, each full of frames for the other, paused each other for ever.
#[test]
fn one_mark_for_all_inputs_of_two_switches_is_a_warning() {
    let warnings = |shape: &str, memory: &str, pause: &str| -> Vec<String> {
        let text = ethernet(&format!(
            "link = {{ pause = \"{pause}\" }}\nswitch = {{ memory = \"{memory}\"{} }}\n",
            if pause == "none" { "" } else { ", headroom = \"20 KB\"" }
        ));
        let text = text.replace("shape = \"star\"\nhosts = 4", shape);
        let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        scenario.warnings.iter().map(ToString::to_string).collect()
    };
    let tree = "shape = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2";
    let told = warnings(tree, "global-watermark", "pfc");
    assert_eq!(
        told,
        [
            "12:21: fabric.switch.memory: switches that pause all inputs together can stop each other for ever: \
             leaf1:3 → spine1:1\n    hint: memory = \"per-input\" or \"shared-pool\" cannot, nor can one switch alone"
        ]
    );
    assert_eq!(warnings(tree, "global-watermark", "pause").len(), 1);
    for (shape, memory, pause) in [
        (tree, "global-watermark", "none"),
        (tree, "per-input", "pfc"),
        (tree, "shared-pool", "pfc"),
        ("shape = \"star\"\nhosts = 4", "global-watermark", "pfc"),
    ] {
        assert_eq!(warnings(shape, memory, pause), [""; 0], "{shape}, {memory}, {pause}");
    }
}

/// Found by random scenarios: a pool for one of four ports was accepted without a word, and lost lossless frames.
#[test]
fn a_headroom_pool_for_some_ports_is_a_warning_with_their_number() {
    let warnings = |pool: u64| -> Vec<String> {
        let text = ethernet(&format!(
            "switch = {{ memory = \"shared-pool\", headroom = \"5 KB\", jitter = \"0 ns\", \
             pool = {{ headroom_pool = \"{pool} B\" }} }}"
        ));
        let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        scenario.warnings.iter().map(ToString::to_string).collect()
    };
    let told = warnings(5_000);
    let (message, hint) = told[0].split_once("\n    hint: headroom_pool = \"").expect("a hint");
    assert!(message.contains("fabric.switch.pool.headroom_pool: s0: 5 KB hold"), "{message}");
    let (all, rest) = hint.split_once(' ').expect("octets");
    assert_eq!(rest, "B\" holds at all");
    let all: u64 = all.parse().expect("octets");
    assert_eq!((all % 4, warnings(all)), (0, vec![]));
    for (pool, served) in [(all - 1, 3), (all / 2, 2), (5_000, 1)] {
        let told = warnings(pool).concat();
        assert!(told.contains(&format!("at {served} of 4 lossless priorities")), "{pool}: {told}");
    }
}

#[test]
fn headroom_that_is_a_frame_short_where_the_pool_can_be_full_is_a_warning() {
    let with = |headroom: u64| {
        let pool = "memory = \"shared-pool\", pool = { size = \"160 KB\" }";
        ethernet(&format!("switch = {{ {pool}, headroom = \"{headroom} B\", jitter = \"0 ns\" }}"))
    };
    let octets = |text: &str| -> u64 {
        let hint = text.split("headroom = \"").nth(1).and_then(|rest| rest.split(' ').next());
        hint.and_then(|octets| octets.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let warnings = |headroom| -> String {
        let scenario = Scenario::parse(&with(headroom), &[]).unwrap_or_else(|f| panic!("{f}"));
        scenario.warnings.iter().map(ToString::to_string).collect()
    };
    let holds = octets(&told(&with(0)));
    assert_eq!(warnings(holds), "");
    let short = warnings(holds - 1);
    assert!(short.contains("fabric.switch.headroom: s0: headroom = "), "{short}");
    assert_eq!(octets(short.split("hint").nth(1).unwrap_or_default()), holds);
    assert!(Scenario::parse(&with(holds - 2_000), &[]).is_err(), "more than a frame short");
}

#[test]
fn a_watchdog_that_forwards_is_a_warning() {
    let warnings = |action: &str| -> Vec<String> {
        let watchdog = format!("watchdog = {{ action = \"{action}\" }}");
        let text = ethernet(&format!("switch = {{ headroom = \"8 KB\", {watchdog} }}"));
        let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        scenario.warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(warnings("drop"), Vec::<String>::new());
    assert!(warnings("forward").concat().contains("fabric.switch.watchdog.action"));
}

#[test]
fn parameters_in_force_are_listed_and_defaults_are_marked() {
    let rest = "link = { rate = \"400 Gbps\" }\nswitch = { headroom = \"800 KB\", buffer = \"4 MB\" }\n\
                [scheme]\nkind = \"dcqcn\"\nkmax = \"1 MB\"\n";
    let scenario = Scenario::parse(&ethernet(rest), &[]).expect("it is legal");
    let find = |name: &str| {
        let found = scenario.settings.iter().find(|setting| setting.name == name);
        let found = found.unwrap_or_else(|| panic!("{name} is not listed"));
        (found.value.as_str(), found.origin == Origin::Default)
    };
    assert_eq!(find("scheme.kmin"), ("50 KB", true), "scaled to the line");
    assert_eq!(find("scheme.kmax"), ("1 MB", false));
    assert_eq!(find("scheme.cnp_interval"), ("50 us", true));
    assert_eq!(find("fabric.switch.table.learned_max"), ("8192", true));
}

#[test]
fn headroom_that_cannot_hold_is_refused_with_the_figure_that_does() {
    let short = told(&ethernet("switch = { headroom = \"1 KB\" }"));
    assert!(short.starts_with("bad.toml:9:23: fabric.switch.headroom: s0: port 1:"), "{short}");
    let hint = short.split("headroom = \"").nth(1).and_then(|rest| rest.split('"').next());
    let needed = hint.expect("the figure");
    let with = |headroom: &str| ethernet(&format!("switch = {{ headroom = \"{headroom}\" }}"));
    assert!(Scenario::parse(&with(needed), &[]).is_ok(), "{needed}");
    let octets: u64 = needed.trim_end_matches(" B").parse().expect("octets");
    assert!(Scenario::parse(&with(&format!("{} B", octets - 1)), &[]).is_err(), "no octet more");
    let nothing = "link = { pause = \"none\" }";
    assert!(Scenario::parse(&ethernet(nothing), &[]).is_ok(), "nobody is silenced: no headroom");
}

#[test]
fn a_receive_buffer_that_cannot_hold_is_refused_with_the_figure_that_does() {
    let with = |buffer: &str| {
        let drain = "{ at = \"h0\", receive_rate = \"5 Gbps\", xoff = \"20 KB\", xon = \"10 KB\" }";
        let nic = format!("nic = {{ buffer = \"{buffer}\", drain = [{drain}] }}");
        ethernet(&format!("switch = {{ headroom = \"8 KB\" }}\n{nic}"))
    };
    let short = told(&with("21 KB"));
    assert!(short.contains("fabric.nic.buffer: h0: drain.xoff = 20 KB"), "{short}");
    let hint = short.split("buffer = \"").nth(1).and_then(|rest| rest.split('"').next());
    let needed = hint.expect("the figure");
    assert!(Scenario::parse(&with(needed), &[]).is_ok(), "{needed}");
    let octets: u64 = needed.trim_end_matches(" B").parse().expect("octets");
    assert!(Scenario::parse(&with(&format!("{} B", octets - 1)), &[]).is_err(), "no octet more");
}
