//! What the program shows: without a checkout, at 80 columns, without Unicode, without colours, quietly, and what shells
//! complete.

#![expect(clippy::disallowed_methods, reason = "these tests start the program")]

use launch::lab::LabRecord;
use launch::lab::folder::{LabStore, LinkRecord};
use nix::pty::openpty;
use proto::congestion::schemes::SCHEMES;
use proto::technology::Technology;
use proto::units::BitRate;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program under test, built with the same profile as this test.
fn pausebed() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a path");
    let folder = own.parent().and_then(Path::parent).expect("target/<profile>/deps/<test>");
    let program = folder.join("pausebed");
    assert!(program.is_file(), "{} is missing: ./test.sh builds it first", program.display());
    program
}

/// Three NICs that obey no pause send to a fourth through a switch whose headroom is meant for NICs that do.
const DEAF: &str = r#"
schema = 1
name   = "deaf"

[run]
seed     = 1
duration = "200 us"

[fabric]
technology = "ethernet"
shape  = "star"
hosts  = 4
mtu    = "1024 B"
link   = { rate = "40 Gbps", delay = "100 ns", pause = "pfc", obeyed = [] }
switch = { memory = "per-input", buffer = "60 KB", headroom = "30 KB" }

[scheme]
kind = "dcqcn"

[[traffic]]
name = "hot"
from = "h[1-3]"
to   = "h0"
size = "1086 B"
load = 0.9

[[traffic]]
name = "cold"
from = "h0"
to   = "h1"
load = 0.1

[[measure]]
name = "got"
of   = "throughput"
at   = "h0:rx"
per  = "line"

[[expect]]
measure = "got"
min = 0.1

[tune]
search = { g = [0.1, 0.2] }
runs   = 6
seeds  = 1
goal   = 0.1
"#;

/// A folder with nothing of the repository, in which the program runs.
struct Place(tempfile::TempDir);

impl Place {
    fn make() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder"))
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(pausebed());
        command.args(words.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        for variable in ["LC_ALL", "LC_CTYPE", "COLUMNS", "NO_COLOR", "PAUSEBED_LABS"] {
            command.env_remove(variable);
        }
        command.env("LANG", "C.UTF-8").env("TERM", "xterm").env("XDG_RUNTIME_DIR", self.0.path());
        command
    }

    /// Standard output and standard error of a command that ends well.
    fn run(&self, words: &str, environment: &[(&str, &str)]) -> (String, String) {
        let output = self.command(words).envs(environment.iter().copied()).output();
        let Output { status, stdout, stderr } = output.expect("the program starts");
        let text = |octets| String::from_utf8(octets).expect("the program prints text");
        let (data, talk) = (text(stdout), text(stderr));
        assert!(status.success(), "{words}: {status}\n{data}{talk}");
        (data, talk)
    }
}

#[test]
fn scenarios_are_listed_copied_made_and_run_without_the_repository() {
    let place = Place::make();
    let (list, _) = place.run("scenarios list", &[]);
    assert!(list.contains("pfister/case4-none") && list.lines().count() > 100, "{list}");
    place.run("scenarios copy zhb/sweeps/w", &[]);
    assert!(place.0.path().join("zhb/case1-partitioned-bcn.toml").is_file());
    let (shown, _) = place.run("scenarios show dcqcn/incast3-dcqcn", &[]);
    assert!(shown.starts_with("# Three senders"), "{shown}");
    place.run("init mine.toml --shape xgft --scheme rr-cc", &[]);
    let (good, _) = place.run("validate mine.toml", &[]);
    assert!(good.contains("mine.toml: good: 12 nodes"), "{good}");
}

#[test]
fn a_dry_run_says_how_long_and_quiet_is_quiet() {
    let place = Place::make();
    place.run("init mine.toml --scheme ib-cca", &[]);
    let (said, _) = place.run("run mine.toml --dry-run --out results", &[]);
    assert!(said.starts_with("incast-star-ib-cca: ") && said.contains(" s"), "{said}");
    assert!(!place.0.path().join("results").exists(), "a dry run leaves nothing");
    let (seconds, _) = place.run("run mine.toml --seeds 1..3 --dry-run --json", &[]);
    let seconds: serde_json::Value = serde_json::from_str(&seconds).expect("it is JSON");
    assert_eq!(seconds["runs"].as_array().map(Vec::len), Some(3));
    assert!(seconds["seconds"].as_f64().is_some_and(|seconds| (0.0..600.0).contains(&seconds)));
    let (result, talk) = place.run("run mine.toml --backend udp --pace exact --quiet", &[]);
    assert!(result.starts_with("PASS") && talk.is_empty(), "{talk}");
    let sweep = "sweep mine.toml --set run.seed=1,2,3 --out swept";
    let (said, _) = place.run(&format!("{sweep} --dry-run"), &[]);
    assert!(said.starts_with("3 runs: ") && !place.0.path().join("swept").exists(), "{said}");
    let (_, talk) = place.run(&format!("{sweep} --quiet"), &[]);
    assert_eq!(talk, "");
}

/// Every command that runs a scenario whose NICs obey no pause, and so lose lossless frames, which no expectation counts.
#[test]
fn lost_lossless_frames_fail_every_command_and_are_told() {
    let place = Place::make();
    std::fs::create_dir(place.0.path().join("suite")).expect("the folder is ours");
    for file in ["deaf.toml", "suite/deaf.toml"] {
        std::fs::write(place.0.path().join(file), DEAF).expect("the folder is ours");
    }
    let ends = |words: &str, why: Option<&str>| {
        let mut command = place.command(words);
        if let Some(why) = why {
            command.args(["--set", "run.lossless_drops=expected"]);
            command.args(["--set", &format!("run.lossless_drops_why={why}")]);
        }
        let output = command.output().expect("the program starts");
        (output.status.code(), String::from_utf8(output.stdout).expect("the program prints text"))
    };
    let lost = "lossless frames lost: headroom overrun, first at s0:2 after 20.8 us";
    for words in [
        "run deaf.toml --out results",
        "run deaf.toml --backend udp --pace exact",
        "suite suite --out results",
        "sweep deaf.toml --set traffic.hot.load=0.2,0.9",
        "tune deaf.toml",
    ] {
        let (code, text) = ends(words, None);
        let line = text.lines().find(|line| line.trim_start().starts_with("✕ "));
        assert!(code == Some(1) && line.is_some_and(|line| line.contains(lost)), "{words}: {text}");
        if words.starts_with("run") {
            assert!(text.starts_with("FAIL  deaf  1 of 1 expectations"), "{text}");
            assert!(text.contains(" headroom_overrun, "), "drops name their reasons: {text}");
        }
        if words.contains("--out results") && words.starts_with("run") {
            let page = std::fs::read_to_string(place.0.path().join("results/report.html"));
            assert!(page.expect("a report").contains(lost), "the headline of the report");
        }
        if words.starts_with("suite") {
            continue;
        }
        let (code, text) = ends(words, Some("NICs are deaf"));
        let told = text.contains("; expected: NICs are deaf");
        assert!(told && code == Some(0), "{words}: {text}");
    }
    let run = std::fs::read_to_string(place.0.path().join("results/run.json"));
    let run: serde_json::Value =
        serde_json::from_str(&run.expect("a run directory")).expect("JSON");
    let drops = &run["lossless_drops"];
    assert_eq!(drops["reasons"]["headroom_overrun"], drops["frames"]);
    assert_eq!((&drops["port"], &drops["tc"]), (&"s0:2".into(), &3.into()));
    let (_, json) = ends("suite suite --json --quiet", None);
    assert!(json.contains("\"lossless_drops\": {"), "{json}");
}

#[test]
fn errors_name_the_page_that_explains() {
    let place = Place::make();
    place.run("init mine.toml --scheme ib-cca", &[]);
    for (words, page) in [
        ("run mine.toml --set fabric.switch.watchdog=7", "docs/book/storms.md"),
        (
            "run mine.toml --set scheme.ccti_increase=x --set run.sed=1",
            "docs/reference/scenario.md, docs/schemes.md",
        ),
        ("verify nothing.pcapng", "docs/book/encoder.md"),
        ("show queues --lab none", "docs/tasks/labs.md"),
    ] {
        let output = place.command(words).output().expect("the program starts");
        let talk = String::from_utf8(output.stderr).expect("the program prints text");
        assert_eq!(talk.matches("see docs/").count(), 1, "{talk}");
        assert!(talk.ends_with(&format!("\nsee {page}\n")), "{talk}");
    }
}

#[test]
fn output_is_ascii_without_unicode_and_plain_without_colours() {
    let place = Place::make();
    place.run("init mine.toml --scheme ib-cca", &[]);
    let plain = [("LANG", "C"), ("NO_COLOR", "1")];
    for words in [
        "run mine.toml",
        "run mine.toml --seeds 1..6",
        "doctor",
        "scenarios list",
        "check --list",
        "sweep mine.toml --set run.seed=1,2",
        "verify --rules",
    ] {
        let (data, talk) = place.run(words, &plain);
        let strange = data.chars().chain(talk.chars()).find(|c| !c.is_ascii() || *c == '\x1b');
        assert_eq!(strange, None, "{words}: {data}{talk}");
        let (data, _) = place.run(words, &[]);
        assert!(!data.contains('\x1b'), "{words}: colours without a terminal");
    }
    let (run, _) = place.run("run mine.toml", &plain);
    assert!(run.contains(">= 0.3") && run.contains(" + "), "{run}");
}

#[test]
fn output_fits_80_columns() {
    let place = Place::make();
    place.run("init mine.toml --scheme ib-cca", &[]);
    let narrow = [("COLUMNS", "80")];
    let (help, _) = place.run("--help", &narrow);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    assert!(names.len() > 30, "{names:?}");
    let daemons = ["help", "switchd", "nicd"];
    let mut all: Vec<String> = names
        .into_iter()
        .filter(|name| !daemons.contains(name))
        .map(|name| format!("{name} --help"))
        .collect();
    all.extend(
        [
            "run mine.toml",
            "run mine.toml --seeds 1..6",
            "doctor",
            "scenarios list",
            "validate mine.toml",
        ]
        .map(str::to_owned),
    );
    for words in all {
        let (data, talk) = place.run(&words, &narrow);
        for line in data.lines().chain(talk.lines()) {
            // A word alone, such as a path, may be longer.
            let is_one_word = !line.trim().contains(' ');
            assert!(line.chars().count() <= 80 || is_one_word, "{words}: {line:?}");
        }
    }
}

#[test]
fn help_has_exit_codes_and_version_the_commit() {
    let place = Place::make();
    for words in ["--help", "run --help", "check --help"] {
        let (help, _) = place.run(words, &[]);
        assert!(help.contains("  4  inconclusive: the host did not keep up"), "{words}: {help}");
    }
    let (version, _) = place.run("--version", &[]);
    assert!(version.contains(launch::COMMIT), "{version}");
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::make();
    place.run("man pages", &[]);
    let pages = std::fs::read_dir(place.0.path().join("pages")).expect("a folder").count();
    assert!(pages > 40, "{pages}");
    let page = std::fs::read_to_string(place.0.path().join("pages/pausebed-set-link.1"));
    assert!(page.is_ok_and(|page| page.contains("leaf1:4")));
}

/// A lab of two cables, which nothing runs.
fn lab(folder: &Path) {
    let link = |a: &str, b: &str| LinkRecord { a: a.into(), b: b.into(), rate: BitRate::gbps(1) };
    let record = LabRecord::empty("thelab".into(), Technology::Ethernet).expect("this process");
    let links = vec![link("h1:1", "leaf1:3"), link("h2:1", "leaf1:4")];
    let store = LabStore::open(Some(folder)).expect("a folder");
    store.create(&LabRecord { links, ..record }, "").expect("a lab");
}

#[test]
fn shells_complete_labs_ports_cases_and_keys() {
    let place = Place::make();
    let labs = place.0.path().join("labs");
    lab(&labs);
    // The words as bash divides them, and which of them is completed.
    let complete = |words: &[&str], replaced: &str| -> Vec<String> {
        let script = format!(
            "PATH={:?}:$PATH; source <(pausebed completions bash); COMP_WORDS=(pausebed \"$@\"); COMP_CWORD=$#; \
             _pausebed pausebed {replaced:?} \"\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            pausebed().parent().expect("it has a folder")
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script, "bash"]).args(words).env("PAUSEBED_LABS", &labs);
        let output = bash.output().expect("bash is there");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    };
    assert_eq!(complete(&["down", "the"], "the"), ["thelab"]);
    assert_eq!(complete(&["set", "link", "leaf"], "leaf"), ["leaf1:3", "leaf1:4"]);
    assert_eq!(complete(&["set", "link", "leaf1", ":"], ""), ["3", "4"]);
    assert_eq!(complete(&["fault", "leaf1", ":", "4"], "4"), ["4"]);
    assert_eq!(complete(&["check", "IBRX-01"], "IBRX-01"), ["IBRX-01"]);
    assert_eq!(
        complete(&["run", "x", "--set", "scheme.ccti_l"], "scheme.ccti_l"),
        ["scheme.ccti_limit="]
    );
    let kinds = complete(&["run", "x", "--set", "scheme.kind", "="], "");
    assert!(kinds.contains(&"dcqcn".to_owned()), "{kinds:?}");
    assert_eq!(
        complete(&["scenarios", "show", "pfister/case4-n"], "pfister/case4-n"),
        ["pfister/case4-none"]
    );
}

#[test]
fn scripts_of_all_shells_have_valid_syntax() {
    let place = Place::make();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let (script, _) = place.run(&format!("completions {shell}"), &[]);
        let file = place.0.path().join(shell);
        std::fs::write(&file, script).expect("a file");
        match Command::new(shell).arg(check).arg(&file).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {output:?}"),
            Err(_) if shell != "bash" => eprintln!("no {shell} here"),
            Err(error) => panic!("{shell}: {error}"),
        }
    }
}

#[test]
#[ignore = "slow: 42 runs"]
fn every_scenario_that_init_writes_meets_its_expectations() {
    let place = Place::make();
    for scheme in SCHEMES {
        for technology in scheme.technologies {
            for shape in scenario::shapes::names() {
                let name = format!("{technology}-{shape}-{}.toml", scheme.name);
                let options =
                    format!("--technology {technology} --shape {shape} --scheme {}", scheme.name);
                place.run(&format!("init {name} {options}"), &[]);
                let (result, _) = place.run(&format!("run {name}"), &[]);
                assert!(result.starts_with("PASS"), "{name}: {result}");
            }
        }
    }
}

#[test]
#[ignore = "slow: four live runs"]
fn an_inconclusive_demo_offers_exact_pace_with_one_key() {
    let place = Place::make();
    let terminal = openpty(None, None).expect("a terminal");
    let side = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
    let mut command = place.command("demo --dilate 1");
    let mut child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("it starts");
    // Only the child has the slave from here on, so the end of the child ends the reading.
    drop(command);
    drop(terminal.slave);
    let mut screen = File::from(terminal.master);
    let (mut seen, mut part, mut is_pressed) = (String::new(), [0; 4096], false);
    while let Ok(length @ 1..) = screen.read(&mut part) {
        seen.push_str(&String::from_utf8_lossy(&part[..length]));
        if !is_pressed && seen.contains("press e") {
            is_pressed = true;
            // The terminal drops what was typed before the program waits for a key.
            while !seen.contains("--pace exact") {
                let length = screen.read(&mut part).expect("the rest of the line");
                seen.push_str(&String::from_utf8_lossy(&part[..length]));
            }
            emulation::timer::wait(None, emulation::clock::monotonic_ns() + 500_000_000);
            screen.write_all(b"e").expect("a key");
        }
    }
    let ended = child.wait().expect("it ends");
    assert!(is_pressed && seen.contains("INCONCLUSIVE"), "{seen}");
    assert!(ended.success() && seen.matches("PASS").count() >= 2, "{ended}: {seen}");
}
