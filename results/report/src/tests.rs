//! Pages of small runs: what stands in them, what must never, and what is said when files are missing.

use super::reference::Calibration;
use super::sheet::STYLE;
use super::{FILE, Report, ReportError, write};
use base64::prelude::{BASE64_STANDARD, Engine};
use launch::experiment::{Conditions, Experiment};
use launch::substrate;
use results::run_directory::hosts::HostLine;
use results::run_directory::result::{self, RunResult};
use scenario::Scenario;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
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

/// Runs `text` into a run directory.
pub fn run(text: &str) -> TempDir {
    let scenario = Scenario::parse(text, &[]).unwrap_or_else(|e| panic!("{}", e.in_file("test")));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let conditions = Conditions {
        folder: Some(folder.path()),
        ..Conditions::new(substrate(scenario.run.backend), "pausebed run /home/somebody/x.toml")
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
fn commands_of_hosts_have_a_table_if_there_are_any() {
    let folder = run(&scenario("a test", "none"));
    let without = page(folder.path(), None).expect("all files are there");
    assert!(!without.contains("id=\"hosts\""));
    let mut changed = result(folder.path());
    changed.hosts.push(HostLine {
        host: "v1".to_owned(),
        kind: "vm".to_owned(),
        command: vec!["rping".to_owned(), "<-s>".to_owned()],
        start_ps: 0,
        exit: None,
        why: Some("it had not ended".to_owned()),
        output: "hosts/v1.out".to_owned(),
        octets: 4_711,
        left_out: 0,
    });
    result::write(folder.path(), &changed).expect("the folder is ours");
    let page = page(folder.path(), None).expect("all files are there");
    assert_eq!(first_unclosed(&page), None);
    for wanted in ["rping &lt;-s&gt;", "it had not ended", "4711", "hosts/v1.out"] {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
}

#[test]
fn the_page_fetches_nothing_and_allows_only_its_own_script() {
    let folder = run(&scenario("a test", "none"));
    let page = page(folder.path(), None).expect("all files are there");
    let (before, script) = page.rsplit_once("<script>").expect("its script is the last");
    let (script, _) = script.split_once("</script>").expect("it ends");
    let hash = format!(
        "script-src 'sha256-{}'",
        BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()))
    );
    assert!(page.contains(&hash), "the policy names this script");
    let script = script.replace("http://www.w3.org/2000/svg", "");
    // What is named by # is on the page itself.
    let before = before.replace("url(#", "");
    for needle in ["http:", "https:", "@import", "url(", "src=", "fetch(", "innerHTML", "/home/"] {
        assert!(!before.contains(needle) && !script.contains(needle), "{needle}");
    }
    assert_eq!(page.matches(" onload=").count() + page.matches(" onerror=").count(), 0);
    // 30 KB of script and 12 KB of style at most (docs/spec/seeing.md 13).
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
fn the_heat_map_has_a_point_for_each_port_and_bin() {
    let folder = run(&scenario("a test", "none"));
    let page = page(folder.path(), None).expect("all files are there");
    // h2 and h3 receive: two rows of points, folded away since the small pictures have both.
    let bins = u32::try_from(result(folder.path()).grid.bins).expect("they are few");
    let mut header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    header.extend([bins, 2].map(u32::to_be_bytes).concat());
    let image = format!("href=\"data:image/png;base64,{}", BASE64_STANDARD.encode(&header));
    assert!(page.contains(&image) && page.contains("<details id=\"heat\"><summary>"));
    assert_eq!(page.matches("mask=\"url(#m1)\"").count(), 1);
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

/// The figures of a run by name.
fn figures(folder: &Path, baseline: Option<&Path>) -> BTreeMap<String, String> {
    let report = Report::load(folder, baseline).expect("all files are there");
    report.figures().into_iter().map(|file| (file.name, file.text)).collect()
}

fn rows(text: &str) -> Vec<Vec<String>> {
    let reader = csv::Reader::from_reader(text.as_bytes()).into_records();
    reader.map(|row| row.expect("a table").iter().map(str::to_owned).collect()).collect()
}

#[test]
fn each_figure_is_two_pictures_that_need_nothing_and_a_table() {
    let (none, scheme) = (run(&scenario("a-none", "none")), run(&scenario("a-ib-cca", "ib-cca")));
    let files = figures(scheme.path(), Some(none.path()));
    let mut names = Vec::new();
    for figure in ["completion-times", "every-port", "fabric", "over-time", "waited-longest"] {
        names.extend(["-178mm.svg", "-85mm.svg", ".csv"].map(|end| format!("{figure}{end}")));
    }
    assert_eq!(files.keys().cloned().collect::<Vec<_>>(), names);
    for (name, text) in files.iter().filter(|(name, _)| name.ends_with(".svg")) {
        assert_eq!(first_unclosed(text), None, "{name}");
        let bare = text.replacen("xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
        for needle in ["http:", "https:", "url(", "@import", "href=", "<script", "var(", " hidden"]
        {
            assert!(!bare.contains(needle), "{name} has {needle}");
        }
        let wide = if name.contains("-85mm") { "width=\"85mm\"" } else { "width=\"178mm\"" };
        assert!(bare.contains(wide) && bare.contains("<style>"), "{name}");
        assert!(
            bare.contains("a-ib-cca with ib-cca, seed 1, beside a-none with none, seed 1"),
            "{name}"
        );
    }
    let page = page(scheme.path(), Some(none.path())).expect("all files are there");
    let (_, title) = files["over-time-85mm.svg"].split_once("<title>").expect("a title");
    let (title, _) = title.split_once("</title>").expect("it ends");
    assert!(page.contains(&format!("<h2>{title}</h2>")), "it says what the page says: {title}");
    assert_eq!(
        files,
        figures(scheme.path(), Some(none.path())),
        "the same files, the same figures"
    );
    assert!(!figures(none.path(), None)["fabric-178mm.svg"].contains("baseline"));
}

#[test]
fn tables_hold_what_is_drawn() {
    let folder = run(&scenario("a test", "ib-cca"));
    let result = result(folder.path());
    let files = figures(folder.path(), None);
    let ports = rows(&files["every-port.csv"]);
    // h2 and h3 receive, and what acknowledgements carry is too little.
    assert_eq!(ports.len(), 2 * result.grid.bins as usize);
    let over_time = rows(&files["over-time.csv"]);
    let received: Vec<&str> = over_time
        .iter()
        .filter(|row| row[..3] == ["received", "ib-cca", "h3"])
        .map(|row| row[7].as_str())
        .collect();
    let own: Vec<&str> =
        ports.iter().filter(|row| row[1] == "h3").map(|row| row[4].as_str()).collect();
    assert_eq!(received, own);
    let time: u64 = ports
        .iter()
        .filter(|row| row[1] == "h3")
        .map(|row| row[3].parse::<u64>().expect("whole"))
        .sum();
    assert_eq!(time, 3_000 * result.tau_ps, "bins cover the run");
    let panels: BTreeSet<&str> = over_time.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        panels,
        BTreeSet::from(["received", "sent", "aggregate", "delay", "queue", "events"])
    );
    let queue = over_time.iter().filter(|row| row[0] == "queue");
    assert!(queue.clone().count() > 0);
    for row in queue {
        assert_eq!(row[3], "bytes");
        let [least, mean, most] =
            [6, 7, 8].map(|at| row[at].parse::<u64>().expect("octets are whole"));
        assert!(least <= mean && mean <= most, "{row:?}");
    }
    let classes = rows(&files["completion-times.csv"]);
    let messages: u64 = classes.iter().map(|row| row[2].parse::<u64>().expect("whole")).sum();
    assert_eq!(messages, result.completions().values().map(|class| class.messages).sum::<u64>());
    // At the cursor, 2000 τ, what the page's caption counts.
    let held = rows(&files["fabric.csv"])
        .iter()
        .filter(|row| row[5].parse::<f64>().is_ok_and(|h| h >= 0.1))
        .count();
    let page = page(folder.path(), None).expect("all files are there");
    assert!(page.contains(&format!("data-k=\"1.held\" data-d=\"0\">{held}</b>")));
}

/// A name that is markup, a quote, a comma and much too long.
fn hostile() -> String {
    format!("<b>&\"',h1</svg>{}", "x".repeat(200))
}

#[test]
fn no_name_harms_a_figure() {
    let folder = run(&scenario(&hostile(), "none"));
    let json = serde_json::to_string(&hostile()).expect("text");
    let (inner, field) = (json.trim_matches('"'), hostile().replace('"', "\"\""));
    change(folder.path(), "topology.json", "\"h3", &format!("\"{inner}"));
    for file in ["ports.csv", "queues.csv"] {
        change(folder.path(), file, "h3:1", &format!("\"{field}:1\""));
    }
    for (name, text) in figures(folder.path(), None) {
        if name.ends_with(".svg") {
            assert_eq!(first_unclosed(&text), None, "{name}");
            assert!(
                !text.contains("<b>")
                    && text.matches("</svg>").count() == text.matches("<svg ").count(),
                "{name}"
            );
        }
        if name == "every-port.csv" {
            assert!(rows(&text).iter().any(|row| row[1] == hostile()), "the name comes back whole");
        }
    }
}

fn referred(
    folder: &Path,
    name: &str,
    content: &[u8],
    over: Option<&str>,
) -> Result<Report, String> {
    let file = folder.join(name);
    std::fs::write(&file, content).expect("the folder is ours");
    let mut report = Report::load(folder, None).expect("all files are there");
    let axes = ["x:10=0,110=1000", "y:50=0,0=1"].map(str::to_owned);
    let calibration = over.map(|over| Calibration::of(over, &axes).expect("two axes"));
    report.refer(&[file], calibration.as_ref())?;
    Ok(report)
}

#[test]
fn points_of_others_lie_hollow_over_their_series() {
    let folder = run(&scenario("a test", "none"));
    let points =
        "panel,run,series,t_tau,value\nreceived,none,h3,1500,0.5\nreceived,none,h3,2000,0.25\n";
    let report =
        referred(folder.path(), "of <others>.csv", points.as_bytes(), None).expect("good points");
    let svg =
        report.figures().into_iter().find(|file| file.name == "over-time-85mm.svg").expect("drawn");
    for text in [report.page(), svg.text] {
        let drawn = "<path class=\"l hole\" d=\"M1500 -500h0M2000 -250h0\"></path>";
        assert!(text.contains("<g class=\"points hot\"><path class=\"l\""), "in h3's colour");
        assert!(text.contains(drawn) && text.contains("reference:"));
        assert!(text.contains("of &lt;others&gt;.csv") && !text.contains("<others>"));
    }
}

#[test]
fn points_that_fit_nothing_are_refused_with_their_line() {
    let folder = run(&scenario("a test", "none"));
    let refused =
        |text: &str| referred(folder.path(), "p.csv", text.as_bytes(), None).expect_err("refused");
    let head = "panel,run,series,t_tau,value\n";
    for (row, why) in [
        (
            "recieved,none,h3,1,1",
            "line 2: there is no panel \"recieved\"; there are: received, sent",
        ),
        (
            "received,ib-cca,h3,1,1",
            "line 2: there is no run in panel received \"ib-cca\"; there are: none",
        ),
        ("received,none,h9,1,1", "line 2: there is no series \"h9\"; there are: h2, h3"),
        ("received,none,h3,NaN,1", "line 2: t_tau \"NaN\" is not a number"),
        ("received,none,h3,1,", "line 2: value \"\" is not a number"),
        ("received,none,h3,3001,1", "line 2: t_tau 3001 is outside"),
        ("received,none,h3,1,1.2", "line 2: value 1.2 is beyond"),
        ("received,none,h3,1,1\nreceived", "line: 3"),
    ] {
        let told = refused(&format!("{head}{row}\n"));
        assert!(told.contains("p.csv: ") && told.contains(why), "{row}: {told}");
    }
    assert!(
        refused("t,v\n1,2\n").contains("line 1: the header is to be panel,run,series,t_tau,value")
    );
    assert!(refused(head).contains("no points"));
    assert!(
        refused(&(head.to_owned() + &"received,none,h3,1,1\n".repeat(10_001)))
            .contains("line 10002: more than")
    );
}

/// As much of a PNG as is looked at: 200 by 100 pixels.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\xc8\0\0\0\x64";

#[test]
fn a_picture_stands_beside_ours_and_over_its_panel() {
    let folder = run(&scenario("a test", "none"));
    let beside = referred(folder.path(), "f.csv", PICTURE, None)
        .expect("its octets count, not its name")
        .page();
    let uri = format!(
        "href=\"data:image/png;base64,{}\" width=\"200\" height=\"100\"",
        BASE64_STANDARD.encode(PICTURE)
    );
    assert_eq!(beside.matches(&uri).count(), 1);
    let (body, _) = beside.split_once("<script").expect("it has one");
    assert!(!body.contains("class=\"overlay\"") && !body.contains("id=\"opacity\""));
    let over = referred(folder.path(), "f.png", PICTURE, Some("received")).expect("a panel").page();
    // 10 τ a pixel from -100 on; a fiftieth of the axis a pixel, downwards from one.
    let place = "transform=\"matrix(10 0 0 20 -100 -1000)\" opacity=\"0\"";
    assert!(over.contains(place) && over.contains("id=\"opacity\" type=\"range\""));
    assert_eq!(over.matches(&uri).count(), 1, "the page carries it once");
    let told =
        referred(folder.path(), "f.png", PICTURE, Some("queues")).expect_err("no such panel");
    assert!(told.contains("there is no panel \"queues\"; there are: "), "{told}");
    let large = [PICTURE, &vec![0; 512 * 1024]].concat();
    let told = referred(folder.path(), "f.png", &large, None).expect_err("too large");
    assert!(told.contains("the picture has more than the 512 KiB that a page carries"), "{told}");
    let points = b"panel,run,series,t_tau,value\nreceived,none,h3,1,1\n";
    let told = referred(folder.path(), "p.csv", points, Some("received")).expect_err("no picture");
    assert!(told.contains("--over lays a picture, and there is none"), "{told}");
}

#[test]
fn a_figure_says_what_it_is_to_be_compared_with() {
    let like = "[[figure]]\nlike = \"A & B, Fig. 3\"\n[[figure]]\nof = \"waited-longest\"\nlike = \"Fig. 4\"\n";
    let folder = run(&(scenario("a test", "none") + like));
    let page = page(folder.path(), None).expect("all files are there");
    for kicker in ["Over time · like A &amp; B, Fig. 3<", "Longest waits · like Fig. 4<"] {
        assert!(page.contains(kicker), "{kicker}");
    }
    assert_eq!(page.matches(" · like ").count(), 2);
    let figures = figures(folder.path(), None);
    assert!(figures["over-time-85mm.svg"].contains(" Like A &amp; B, Fig. 3. Of a test with none"));
    assert!(!figures["fabric-85mm.svg"].contains("Like "));
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
fn where_the_clock_was_stretched_is_a_lane() {
    let folder = run(&scenario("a test", "none"));
    let before = page(folder.path(), None).expect("all files are there");
    assert!(!before.contains("stretched"));
    let pieces = r#"[{"from_ps": 0, "dilation": 1000}, {"from_ps": 2000000, "dilation": 4000}]"#;
    let stretched = format!("\"dilation\": 1000,\n  \"pace\": \"wall\",\n  \"pieces\": {pieces}");
    change(folder.path(), "run.json", "\"dilation\": null", &stretched);
    let page = page(folder.path(), None).expect("all files are there");
    for part in [">clock stretched, ", "clock stretched up to 4.0×", "once the clock was stretched"]
    {
        assert!(page.contains(part), "{part}");
    }
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
    let error = page(folder.path(), None).expect_err("no port is called h9").to_string();
    assert!(
        error.contains("ports.csv") && error.contains("line 5: topology.json has no port h9:1"),
        "{error}"
    );
    change(folder.path(), "ports.csv", ",h9:1,0,", ",h3:1,0,x");
    let error = page(folder.path(), None).expect_err("x is not a number").to_string();
    assert!(error.contains("invalid digit found in string"), "{error}");
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
    assert!(page.contains("s1, s0 sent XOFF, in this order"), "h2 was only asked");
    // One that was kept and four that were counted.
    assert!(page.contains("<td class=\"n\">5</td></tr>"), "no sum for s1");
    assert!(page.contains("XOFF sent per τ, none"));
}
