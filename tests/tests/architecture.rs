//! Rules that the compiler does not check: which module may import which, which file may call the operating
//! system, and that every file begins with its purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/unsafe_code.rs"]
mod unsafe_code;

const MEMBERS: [&str; 12] = [
    "proto",
    "emulation",
    "capture",
    "switchd",
    "nicd",
    "topo",
    "results",
    "hosts",
    "check",
    "cli",
    "python",
    "tests",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_toml(path: &str) -> toml::Table {
    read(&root().join(path)).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below `folder` with this extension, as (path from the root, text), sorted by path.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of this repository is readable") {
            let path = entry.expect("a folder entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                let name = path.strip_prefix(root()).expect("the path is below the root");
                found.push((name.to_string_lossy().into_owned(), read(&path)));
            }
        }
    }
    found.sort();
    found
}

/// Every Rust file of every crate. Fails if a crate has fewer than three, since then its folder was not found.
fn sources() -> Vec<(String, String)> {
    let of_member = |member: &&str| {
        let found = files(member, "rs");
        assert!(found.len() >= 3, "the sources of {member} were not found");
        found
    };
    MEMBERS.iter().flat_map(of_member).collect()
}

/// Code lines, without comments and without the inline test module and what follows it.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
}

fn is_test(name: &str) -> bool {
    name.starts_with("tests/") || name.ends_with("tests.rs") || name.contains("/tests/")
}

/// Files below `inside` in which a product line contains `needle`, except those below a path in `allowed`.
fn offenders(needle: &str, inside: &str, allowed: &[&str]) -> Vec<String> {
    let rooms: Vec<_> = sources()
        .into_iter()
        .filter(|(name, _)| name.starts_with(inside) && !is_test(name))
        .collect();
    for place in allowed.iter().chain([&inside]) {
        let there = rooms.iter().any(|(name, _)| name.starts_with(place));
        assert!(there, "{place:?} contains no file, so the rule about {needle} checks nothing");
    }
    rooms
        .into_iter()
        .filter(|(name, _)| !allowed.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(_, text)| code(text).any(|line| line.contains(needle)))
        .map(|(name, _)| name)
        .collect()
}

fn manifest_dependencies(member: &str) -> Vec<String> {
    let manifest = read_toml(&format!("{member}/Cargo.toml"));
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

/// Every crate of the workspace: its name, its folder, and the workspace crates on which it may depend.
const CRATES: &[(&str, &str, &[&str])] = &[
    ("proto", "proto", &[]),
    ("verbs", "proto/verbs", &[]),
    ("management", "proto/management", &["proto"]),
    ("skip", "tests/skip", &[]),
    ("testbed", "check/testbed", &["proto", "verbs", "management"]),
    ("emulation", "emulation", &["proto"]),
    ("capture", "capture", &["proto", "emulation"]),
    ("daemon", "emulation/daemon", &["proto", "management", "emulation", "capture"]),
    ("switchd", "switchd", &["proto", "management", "emulation", "daemon"]),
    ("nicd", "nicd", &["proto", "verbs", "management", "emulation", "daemon"]),
    ("chart", "results/chart", &[]),
    ("scenario", "topo/scenario", &["proto", "emulation", "switchd", "nicd", "chart"]),
    ("results", "results", &["proto", "emulation", "capture", "scenario"]),
    ("agent", "hosts/agent", &["verbs"]),
    ("guest", "hosts/guest", &["verbs", "agent"]),
    ("host", "hosts", &["proto", "emulation", "verbs", "guest"]),
    (
        "launch",
        "topo/launch",
        &[
            "proto",
            "emulation",
            "capture",
            "daemon",
            "switchd",
            "nicd",
            "scenario",
            "results",
            "host",
        ],
    ),
    ("report", "results/report", &["proto", "emulation", "daemon", "chart", "scenario", "results"]),
    ("dissect", "capture/dissect", &["proto", "emulation", "capture"]),
    (
        "pausebed-python",
        "python",
        &["proto", "emulation", "dissect", "launch", "report", "scenario"],
    ),
    (
        "search",
        "results/search",
        &["proto", "emulation", "nicd", "chart", "scenario", "results", "launch"],
    ),
    (
        "serve",
        "results/serve",
        &["proto", "emulation", "capture", "daemon", "scenario", "results", "report", "launch"],
    ),
    (
        "conformance",
        "check/conformance",
        &[
            "proto",
            "emulation",
            "capture",
            "daemon",
            "switchd",
            "nicd",
            "scenario",
            "results",
            "launch",
            "testbed",
            "management",
        ],
    ),
    (
        "dut",
        "check/dut",
        &[
            "proto",
            "emulation",
            "capture",
            "scenario",
            "results",
            "host",
            "launch",
            "testbed",
            "verbs",
        ],
    ),
    (
        "pausebed",
        "cli",
        &[
            "proto",
            "emulation",
            "capture",
            "daemon",
            "switchd",
            "nicd",
            "scenario",
            "results",
            "host",
            "launch",
            "report",
            "dissect",
            "search",
            "serve",
            "conformance",
            "dut",
        ],
    ),
];

#[test]
fn crates_depend_downwards_only() {
    let manifest = read_toml("Cargo.toml");
    let members = manifest["workspace"]["members"].as_array().expect("workspace.members is a list");
    for member in members
        .iter()
        .filter_map(toml::Value::as_str)
        .filter(|name| !["tests", "examples"].contains(name))
    {
        let known = CRATES.iter().any(|(_, folder, _)| *folder == member);
        assert!(known, "{member} is not in the table of crates");
    }
    let mut arrows = 0;
    for (place, (name, folder, allowed)) in CRATES.iter().enumerate() {
        for below in *allowed {
            let above = CRATES[place..].iter().any(|(other, ..)| other == below);
            assert!(!above, "{name} may use {below}, which stands above it in the table");
        }
        for dependency in manifest_dependencies(folder) {
            let ours = CRATES.iter().any(|(other, ..)| *other == dependency);
            arrows += usize::from(ours);
            let downwards = allowed.contains(&dependency.as_str());
            assert!(!ours || downwards, "{name} must not depend on {dependency}");
        }
    }
    assert!(arrows >= 40, "only {arrows} dependencies between the crates were found");
}

/// A library with other features is another library, which would be compiled once for the program and once for tests.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts cargo")]
fn program_and_tests_share_compiled_libraries() {
    let features = |words: &[&str]| -> BTreeMap<String, String> {
        let mut cargo = std::process::Command::new("cargo");
        cargo.args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}|"]);
        let ended = cargo.args(words).current_dir(root()).output().expect("cargo runs");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let text = String::from_utf8(ended.stdout).expect("names are UTF-8");
        let columns = text.lines().filter_map(|line| {
            let mut columns = line.split('|').map(str::to_owned);
            columns.next().zip(columns.next())
        });
        columns.collect()
    };
    let of_tests = features(&["--workspace", "--edges", "normal,dev"]);
    let of_program = features(&["--package", "pausebed", "--edges", "normal"]);
    let others = |(name, its): &(&String, &String)| of_tests.get(*name) != Some(its);
    let others: Vec<_> = of_program.iter().filter(others).collect();
    assert!(
        others.is_empty() && of_program.len() > 100,
        "name features in cli/Cargo.toml: {others:?}"
    );
}

#[test]
fn proto_cannot_reach_the_operating_system() {
    let banned = ["tokio", "socket2", "pnet", "libc", "nix", "prometheus", "dashmap", "tracing"];
    let dependencies = manifest_dependencies("proto");
    assert!(!dependencies.is_empty(), "proto's manifest was not read");
    for dependency in dependencies {
        assert!(!banned.contains(&dependency.as_str()), "proto must not depend on {dependency}");
    }
    for needle in ["std::time", "std::net", "std::thread", "std::fs", "std::process", "std::env"] {
        assert_eq!(offenders(needle, "proto/src", &[]), [""; 0], "{needle} in proto");
    }
}

#[test]
fn the_modules_of_proto_import_only_lower_layers() {
    let never = [
        ("proto/src/wire", &["link", "congestion", "device"][..]),
        ("proto/src/link", &["congestion"]),
        ("proto/src/congestion", &["link", "device"]),
        ("proto/src/units.rs", &["wire", "link", "congestion", "device", "frame"]),
        ("proto/src/frame.rs", &["wire", "link", "congestion", "device"]),
        ("proto/src/departure.rs", &["wire", "link", "congestion", "device"]),
        ("proto/src/device.rs", &["wire", "congestion"]),
    ];
    for (layer, above) in never {
        for module in above {
            let needle = format!("crate::{module}");
            assert_eq!(offenders(&needle, layer, &[]), [""; 0], "{layer} imports {module}");
        }
    }
    // A grouped `use` would hide a module from the search above.
    assert_eq!(
        offenders("crate::{", "proto/src", &[]),
        [""; 0],
        "proto needs one `use` for each module"
    );
}

/// No circular imports between sibling modules: the modules of each folder have a partial order.
/// Imports between a module and its own submodules are not checked.
#[test]
fn no_crate_has_circular_module_imports() {
    let mut circles = Vec::new();
    let mut arrows = 0;
    for (name, folder, _) in CRATES {
        let graph = modules::of_crate(&root().join(folder).join("src"));
        arrows += graph.arrows();
        circles.extend(graph.circles().into_iter().map(|circle| format!("{name}: {circle}")));
    }
    assert!(arrows >= 500, "only {arrows} imports between modules were found");
    assert!(circles.is_empty(), "circular imports between modules:\n{}", circles.join("\n"));
}

#[test]
fn no_scheme_imports_another_scheme() {
    let names: Vec<String> = proto::congestion::schemes::SCHEMES
        .iter()
        .map(|scheme| scheme.name.replace('-', "_"))
        .collect();
    let mut seen = BTreeSet::new();
    for (file, text) in sources() {
        let Some(own) = file.strip_prefix("proto/src/congestion/schemes/") else { continue };
        let own = own.split(['/', '.']).next().unwrap_or_default();
        seen.insert(own.to_owned());
        // `none` provides an absent role, which every scheme may use.
        for other in names.iter().filter(|other| *other != own && *other != "none") {
            let imports = code(&text).any(|line| {
                line.contains(&format!("schemes::{other}"))
                    || line.contains(&format!("super::{other}"))
            });
            assert!(!imports, "{file} imports {other}");
        }
    }
    for name in names {
        assert!(seen.contains(&name), "scheme {name} must live in schemes/{name}.rs");
    }
}

#[test]
fn only_the_main_files_of_the_daemons_import_emulation() {
    for needle in ["emulation::", "daemon::"] {
        assert_eq!(offenders(needle, "switchd/src", &["switchd/src/main.rs"]), [""; 0]);
        assert_eq!(offenders(needle, "nicd/src", &["nicd/src/main.rs"]), [""; 0]);
    }
}

const CLOCK: &str = "emulation/src/clock.rs";
const TIMER: &str = "emulation/src/timer.rs";
const CABLE: &str = "emulation/src/cable/";
const PROCESSES: &[&str] = &["topo/launch/src/", "hosts/src/", "hosts/guest/src/"];
const ADMIN: &str = "emulation/daemon/src/admin";

/// A call to the operating system: its path in clippy.toml (if clippy can name it), its text in a
/// line of code, and the only files or folders that may contain it.
const DOORS: &[(&str, &str, &[&str])] = &[
    ("std::time::Instant::now", "Instant::now(", &[CLOCK]),
    ("std::time::SystemTime::now", "SystemTime::now(", &[CLOCK]),
    ("nix::time::clock_gettime", "clock_gettime(", &[CLOCK]),
    ("std::thread::sleep", "thread::sleep", &[TIMER]),
    ("tokio::time::sleep", "time::sleep", &[TIMER]),
    ("", "nanosleep(", &[TIMER]),
    ("", "ppoll(", &[TIMER]),
    ("std::process::Command::new", "process::Command", PROCESSES),
    ("tokio::process::Command::new", "Command::new", PROCESSES),
    ("std::net::UdpSocket::bind", "UdpSocket", &[CABLE]),
    ("std::os::unix::net::UnixDatagram::bind", "UnixDatagram", &[CABLE]),
    ("", "libc::socket(", &[CABLE]),
    ("", "Socket::new(", &[CABLE]),
];

/// Only the daemons' admin server and the live page use HTTP.
#[test]
fn only_two_places_use_http() {
    assert_eq!(offenders("axum::", "", &[ADMIN, "results/serve/src"]), [""; 0]);
    let client = "topo/launch/src/lab/client.rs";
    assert_eq!(offenders("hyper::", "", &[ADMIN, client]), [""; 0]);
}

#[test]
fn each_operating_system_interface_has_one_owner() {
    for (_, needle, rooms) in DOORS {
        assert_eq!(offenders(needle, "", rooms), [""; 0], "{needle} outside {rooms:?}");
    }
}

#[test]
fn clippy_disallows_the_same_calls() {
    let clippy = read_toml("clippy.toml");
    let text = |entry: &toml::Value, key: &str| entry[key].as_str().map(str::to_owned);
    let listed = clippy["disallowed-methods"].as_array().expect("a list");
    let listed: BTreeMap<_, _> =
        listed.iter().map(|entry| (text(entry, "path"), text(entry, "reason"))).collect();
    for (path, _, rooms) in DOORS.iter().filter(|(path, ..)| !path.is_empty()) {
        let reason = listed.get(&Some((*path).to_owned())).cloned().flatten();
        let reason = reason.unwrap_or_else(|| panic!("clippy.toml does not disallow {path}"));
        for room in *rooms {
            assert!(reason.contains(room), "clippy.toml does not name {room} for {path}");
        }
    }
    let named = DOORS.iter().filter(|(path, ..)| !path.is_empty()).count();
    assert_eq!(listed.len(), named, "clippy.toml disallows a method that DOORS does not list");
}

#[test]
fn every_file_begins_with_its_purpose() {
    for (name, text) in sources() {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 12, "{name} begins with {first:?}");
    }
}

#[test]
fn every_scenario_begins_with_its_purpose() {
    let scenarios = files("topo/scenarios", "toml");
    assert!(scenarios.len() >= 18, "only {} scenarios were found", scenarios.len());
    for (name, text) in scenarios {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("# ") && first.len() > 20, "{name} begins with {first:?}");
    }
}

#[test]
fn no_function_exceeds_its_line_limit() {
    const LIMIT: usize = 70;
    let mut seen = 0;
    for (name, text) in sources().into_iter().filter(|(name, _)| !is_test(name)) {
        for (function, lines) in functions(&text) {
            seen += 1;
            assert!(
                lines <= LIMIT,
                "{name}: `{function}` has {lines} lines, at most {LIMIT} are allowed"
            );
        }
    }
    assert!(seen >= 4_000, "only {seen} functions were found");
}

/// Functions of the product code with the lines they take, signature and braces included.
fn functions(text: &str) -> Vec<(String, usize)> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines: Vec<&str> = product.lines().collect();
    let name = |line: &str| {
        let words = line.trim_start();
        let (before, after) = words.split_once("fn ")?;
        let is_item = before.split_whitespace().all(|word| {
            ["const", "async", "unsafe", "extern", "\"C\""].contains(&word)
                || word.starts_with("pub")
        });
        let named = after.split(['(', '<']).next().unwrap_or_default();
        (is_item && !line.trim_end().ends_with(';')).then(|| named.to_owned())
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let length = lines[at..].iter().position(|line| *line == closing).unwrap_or(0);
        found.push((name, length + 1));
    }
    found
}

#[test]
fn no_crate_exceeds_its_line_limit() {
    for (name, folder, _) in CRATES {
        let source = format!("{folder}/src/");
        let of_crate: Vec<_> =
            sources().into_iter().filter(|(file, _)| file.starts_with(&source)).collect();
        assert!(!of_crate.is_empty(), "{name} has no source in {source}");
        let product = of_crate.into_iter().filter(|(file, _)| !is_test(file));
        let lines: usize = product.map(|(_, text)| text.lines().count()).sum();
        assert!(lines <= 20_000, "{name} has {lines} lines of product code");
    }
}

#[test]
fn module_files_stand_beside_their_folders_with_specific_names() {
    let vague = ["utils", "helpers", "common", "types", "manager", "misc", "mod"];
    for (name, _) in sources() {
        let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        assert!(!vague.contains(&stem.as_str()), "{name} has an unspecific file name");
    }
}

#[test]
fn engine_files_cite_their_sources() {
    let rooms = [
        "proto/src/link/credit",
        "proto/src/link/vl_arbiter",
        "proto/src/wire/infiniband",
        "proto/src/wire/ethernet",
        "proto/src/wire/internet",
        "proto/src/wire/roce",
    ];
    for room in rooms {
        let engines: Vec<_> = sources()
            .into_iter()
            .filter(|(name, text)| {
                name.starts_with(room) && !is_test(name) && text.lines().count() > 60
            })
            .collect();
        assert!(!engines.is_empty(), "{room} was not found");
        for (name, text) in engines {
            assert!(text.contains("Source"), "{name} does not cite its source");
        }
    }
}
