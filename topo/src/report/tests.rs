//! Pages of small runs: what stands in them, what must never, and what is said when files are missing.

use super::columns::base64;
use super::sheet::STYLE;
use super::{FILE, Report, ReportError, write};
use crate::experiment::{Conditions, Experiment};
use crate::launch::substrate;
use crate::run_directory::result::RunResult;
use crate::scenario::Scenario;
use sha2::{Digest, Sha256};
use std::path::Path;
use tempfile::TempDir;

/// `h0, h1 ─ s0 ─ s1 ─ h2, h3`: h0 and h2 both fill h3's line, so s1's output to h3 is a root, and h1, on
/// its way to h2, is the victim.
fn scenario(name: &str, scheme: &str) -> String {
    format!(
        r#"schema = 1
name = {name:?}
source = "a test"
say = "{{victim:%}} were left to the victim."
[run]
duration = "3000 mtu"
[fabric]
technology = "infiniband"
link = {{ rate = "8 Gbps", delay = "0.125 mtu" }}
switch = {{ buffer = "36 mtu" }}
nodes = [
  {{ name = "h0", kind = "nic" }}, {{ name = "h1", kind = "nic" }},
  {{ name = "h2", kind = "nic" }}, {{ name = "h3", kind = "nic" }},
  {{ name = "s0", kind = "switch" }}, {{ name = "s1", kind = "switch" }},
]
links = [
  {{ a = "h0:1", b = "s0:1" }}, {{ a = "h1:1", b = "s0:2" }}, {{ a = "s0:3", b = "s1:3" }},
  {{ a = "h2:1", b = "s1:1" }}, {{ a = "h3:1", b = "s1:2" }},
]
[scheme]
kind = "{scheme}"
[[traffic]]
name = "hot"
from = ["h0", "h2"]
to = "h3"
load = 0.9
arrivals = "poisson"
size = "2048 B"
[[traffic]]
name = "victim"
from = "h1"
to = "h2"
load = 0.9
arrivals = "poisson"
size = "2048 B"
[[phase]]
name = "all of it"
start = "0 mtu"
[[measure]]
name = "victim"
of = "throughput"
at = "h2:rx"
from = "1000 mtu"
to = "3000 mtu"
per = "line"
[[measure]]
name = "hot_port"
of = "throughput"
at = "h3:rx"
from = "1000 mtu"
to = "3000 mtu"
per = "line"
[[expect]]
measure = "victim"
max = 1.0
theory = 0.5
why = "it shares a line with what waits for <h3>"
[[expect]]
measure = "hot_port"
min = 0.9
why = "asked for twice what it can carry"
"#
    )
}

fn run(text: &str) -> TempDir {
    let scenario = Scenario::parse(text, &[]).unwrap_or_else(|e| panic!("{}", e.in_file("test")));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let conditions = Conditions {
        substrate: substrate(scenario.run.backend),
        dilation: 0,
        threads: 1,
        folder: Some(folder.path()),
        command: "pausebed run /home/somebody/x.toml".to_owned(),
        injections: Vec::new(),
    };
    Experiment::run(&scenario, conditions, &mut |_| {}).expect("nothing interrupts it");
    folder
}

fn page(folder: &Path, baseline: Option<&Path>) -> Result<String, ReportError> {
    Ok(Report::load(folder, baseline)?.page())
}

fn result(folder: &Path) -> RunResult {
    let text = std::fs::read_to_string(folder.join("run.json")).expect("it was written");
    serde_json::from_str(&text).expect("by us")
}

fn change(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(path, text.replace(from, to)).expect("the folder is ours");
}

/// Every element is closed in its turn; the first that is not, if any.
fn first_unclosed(html: &str) -> Option<String> {
    const VOID: [&str; 3] = ["meta", "input", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag = &rest[..rest.find('>')?];
        let name = tag.split([' ', '/']).find(|part| !part.is_empty())?;
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return Some(closed.to_owned());
            }
        } else if !VOID.contains(&name) {
            open.push(name);
            if ["script", "style"].contains(&name) {
                let end = rest.find(&format!("</{name}>"))?;
                rest = &rest[end..];
            }
        }
    }
    open.pop().map(str::to_owned)
}

#[test]
fn a_page_says_the_verdict_and_every_expectation_and_draws_every_line() {
    let folder = run(&scenario("a test", "none"));
    let result = result(folder.path());
    let page = page(folder.path(), None).expect("all files are there");
    assert_eq!(first_unclosed(&page), None);
    let share = result.measures["victim"].clone().and_then(|v| v.number()).expect("measured");
    assert!(page.contains(&format!("<h1>{:.0} % were left to the victim.</h1>", share * 100.0)));
    for wanted in ["PASS", "2 of 2 expectations", "hot port", "waits for &lt;h3&gt;", "all of it"] {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
    // Five cables: ten directions. Adapters that never send or receive have no line in a folded
    // picture: h3 sends acknowledgements alone, h0 and h1 receive none but those.
    assert_eq!(page.matches(" data-e=\"").count(), 7, "one path a direction that carries data");
    // h0 and h2 share h3's line; what h0 keeps of it and what is left to the victim fill s0's line,
    // which is a root too, of both who send over it.
    let trees = result.saturation.trees.iter();
    let trees: Vec<_> = trees.map(|t| (t.root.as_str(), t.feeds.as_str(), t.size)).collect();
    assert_eq!(trees, [("s0:3", "s1", 2), ("s1:2", "h3", 1)]);
    // Outputs 4 and 9: cables 2 and 4, from their first end and from their second.
    assert!(page.contains("data-r=\"4\"") && page.contains("data-r=\"9\""), "roots have rings");
}

#[test]
fn the_page_fetches_nothing_and_allows_only_its_own_script() {
    let folder = run(&scenario("a test", "none"));
    let page = page(folder.path(), None).expect("all files are there");
    let (before, script) = page.rsplit_once("<script>").expect("its script is the last");
    let (script, _) = script.split_once("</script>").expect("it ends");
    let hash = format!("script-src 'sha256-{}'", base64(&Sha256::digest(script.as_bytes())));
    assert!(page.contains(&hash), "the policy names this script");
    let script = script.replace("http://www.w3.org/2000/svg", "");
    for needle in ["http:", "https:", "@import", "url(", "src=", "fetch(", "innerHTML", "/home/"] {
        assert!(!before.contains(needle) && !script.contains(needle), "{needle}");
    }
    assert_eq!(page.matches(" onload=").count() + page.matches(" onerror=").count(), 0);
    // 30 KB of script and 12 KB of style at most (seeing.md 13).
    assert!(script.len() < 30_000);
    let style = include_str!("../../assets/report.css").len() + STYLE.len();
    assert!(style < 12_000, "{style} octets");
}

#[test]
fn the_same_files_give_the_same_page_and_two_runs_stand_side_by_side() {
    let (none, scheme) = (run(&scenario("a-none", "none")), run(&scenario("a-ib-cca", "ib-cca")));
    let first = page(scheme.path(), Some(none.path())).expect("all files are there");
    assert_eq!(first, page(scheme.path(), Some(none.path())).expect("still"));
    let file = write(scheme.path(), Some(none.path())).expect("the folder is ours");
    assert_eq!(file, scheme.path().join(FILE));
    assert_eq!(std::fs::read_to_string(file).expect("just written"), first);
    assert_eq!(first_unclosed(&first), None);
    assert!(
        first.contains("same fabric, same seed")
            && first.contains("id=\"f0\"")
            && first.contains("id=\"f1\"")
    );
    assert!(first.len() < 200_000, "{} octets", first.len());
    change(none.path(), "run.json", "\"seed\": 1,", "\"seed\": 2,");
    let other = page(scheme.path(), Some(none.path())).expect("all files are there");
    assert!(other.contains("seed differs") && !other.contains("same seed"));
}

#[test]
fn the_caption_is_what_the_tables_say() {
    let folder = run(&scenario("a test", "none"));
    let page = page(folder.path(), None).expect("all files are there");
    let result = result(folder.path());
    // The cursor stands in the middle of 1000 to 3000 τ.
    let t = 2_000 * result.tau_ps / result.grid.dt_ps * result.grid.dt_ps;
    let table = std::fs::read_to_string(folder.path().join("ports.csv")).expect("it was written");
    let held = table.lines().skip(1).filter(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().expect("a whole number");
        number(0) == t && number(8) * 10 >= number(1)
    });
    let held = held.count();
    assert!(held >= 3, "the tree stands there");
    assert!(page.contains(&format!("data-k=\"1.held\" data-d=\"0\">{held}</b> of 10 outputs")));
}

#[test]
fn an_inconclusive_run_is_neither_green_nor_red() {
    let folder = run(&scenario("a test", "none"));
    change(
        folder.path(),
        "run.json",
        "\"verdict\": \"pass\",\n  \"measures\"",
        "\"verdict\": \"inconclusive\",\n  \"measures\"",
    );
    change(
        folder.path(),
        "run.json",
        "\"suggested_dilation\": null",
        "\"suggested_dilation\": 1600",
    );
    let page = page(folder.path(), None).expect("all files are there");
    let (_, body) = page.split_once("<body").expect("it has a body");
    let (body, _) = body.split_once("<script").expect("before the script");
    for sign in [
        "✓",
        "✕",
        "sign pass",
        "sign fail",
        "badge pass",
        "badge fail",
        "class=\"accept\" x=\"1000",
    ] {
        assert!(!body.contains(sign), "{sign}");
    }
    assert!(
        body.contains("INCONCLUSIVE") && body.contains("--dilate 1600"),
        "what would have held"
    );
}

#[test]
fn a_failed_run_opens_with_its_worst_miss() {
    let text = scenario("a test", "none").replace("min = 0.9\n", "min = 1.5\n");
    let folder = run(&text);
    let page = page(folder.path(), None).expect("all files are there");
    assert!(
        page.contains("<h1>Hot port: ") && page.contains("; ≥ 1.5 was expected.</h1>"),
        "its sentence"
    );
    assert!(page.contains("badge fail") && page.contains("✕ fail"));
}

#[test]
fn a_name_is_text_whatever_is_in_it() {
    let name = "</script><img src=x onerror=alert(1)>\"'&";
    let folder = run(&scenario(name, "none"));
    for (file, from, to) in [
        ("topology.json", "\"h1", "\"<b>&h1</script>"),
        ("ports.csv", "h1:1", "<b>&h1</script>:1"),
        ("queues.csv", "h1:1", "<b>&h1</script>:1"),
    ] {
        change(folder.path(), file, from, to);
    }
    let page = page(folder.path(), None).expect("all files are there");
    assert_eq!(first_unclosed(&page), None);
    assert!(!page.contains("<img") && !page.contains("<b>&h1"), "no markup of a name's");
    assert!(page.contains("&lt;img") && page.contains("\\u003cb>&h1\\u003c/script>"));
}

#[test]
fn what_is_missing_or_broken_is_named() {
    for file in [
        "run.json",
        "topology.json",
        "ports.csv",
        "queues.csv",
        "rates.csv",
        "flows.csv",
        "counters.csv",
        "fidelity.csv",
        "scenario.toml",
    ] {
        let folder = run(&scenario("a test", "none"));
        std::fs::remove_file(folder.path().join(file)).expect("it was written");
        let error = page(folder.path(), None).expect_err("a file is missing");
        assert!(matches!(error, ReportError::Read { .. }), "{file}: {error}");
        assert!(error.to_string().contains(file), "{error}");
    }
    let folder = run(&scenario("a test", "none"));
    change(folder.path(), "ports.csv", ",h3:1,", ",h9:1,");
    let error = page(folder.path(), None).expect_err("nobody is called h9").to_string();
    assert!(
        error.contains("ports.csv") && error.contains("line 5: topology.json has no port h9:1"),
        "{error}"
    );
    change(folder.path(), "ports.csv", ",h9:1,0,", ",h3:1,0,x");
    let error = page(folder.path(), None).expect_err("x is no number").to_string();
    assert!(error.contains("is no whole number"), "{error}");
}

#[test]
fn who_paused_first_stands_first_and_what_is_only_counted_is_shared_out() {
    let folder = run(&scenario("pauses", "none"));
    let line = |t: u64, at: &str, ev: &str, rest: &str| {
        format!("{{\"t\":{t},\"at\":\"{at}\",\"ev\":\"{ev}\",{rest}}}\n")
    };
    let log = [
        line(5_000_000, "s1:1", "xoff", "\"dir\":\"tx\""),
        line(5_100_000, "h2:1", "xoff", "\"dir\":\"rx\""),
        line(6_000_000, "s0:1", "xoff", "\"dir\":\"tx\""),
        line(7_000_000, "s1:1", "xon", "\"dir\":\"tx\""),
        line(8_000_000, "s1:1", "xoff", "\"dt\":1000,\"n\":4"),
        line(8_000_000, "h2:1", "xoff", "\"dt\":1000,\"n\":7"),
    ];
    std::fs::write(folder.path().join("events.jsonl"), log.concat()).expect("the folder is ours");
    let page = page(folder.path(), None).expect("a whole run directory");
    assert!(page.contains("s1, s0 asked for silence, in this order"), "h2 was only asked");
    // One that was kept and four that were counted.
    assert!(page.contains("<td class=\"n\">5</td></tr>"), "no sum for s1");
    assert!(page.contains("XOFF sent per τ, none"));
}
