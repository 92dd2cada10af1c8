//! The house rules that no compiler checks: who imports whom, where the doors to the operating
//! system are, and that every file says what it is for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Rust file of the crates as (path from the root, text), in order.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = ["proto", "emulation", "switchd", "nicd", "topo", "tests"]
        .map(|name| root().join(name))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 30, "the sources were not found");
    found
}

/// Code lines: comments and everything below the inline tests left out.
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

/// Files of `sources` in which a product line holds `needle`, apart from those allowed.
fn offenders(needle: &str, inside: &str, allowed: &[&str]) -> Vec<String> {
    sources()
        .into_iter()
        .filter(|(name, _)| name.starts_with(inside) && !is_test(name))
        .filter(|(name, _)| !allowed.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(_, text)| code(text).any(|line| line.contains(needle)))
        .map(|(name, _)| name)
        .collect()
}

fn manifest_dependencies(member: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let table = manifest.get("dependencies").and_then(toml::Value::as_table);
    table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
}

#[test]
fn crates_depend_downwards_only() {
    let members = ["proto", "emulation", "switchd", "nicd", "topo"];
    let may = BTreeMap::from([
        ("proto", vec![]),
        ("emulation", vec!["proto"]),
        ("switchd", vec!["proto", "emulation"]),
        ("nicd", vec!["proto", "emulation"]),
        ("topo", vec!["proto", "emulation", "switchd", "nicd"]),
    ]);
    for member in members {
        for dependency in manifest_dependencies(member) {
            let ours = members.contains(&dependency.as_str());
            let allowed = may[member].contains(&dependency.as_str());
            assert!(!ours || allowed, "{member} must not depend on {dependency}");
        }
    }
}

#[test]
fn proto_cannot_reach_the_operating_system() {
    let banned = ["tokio", "socket2", "pnet", "libc", "nix", "prometheus", "dashmap", "tracing"];
    for dependency in manifest_dependencies("proto") {
        assert!(!banned.contains(&dependency.as_str()), "proto must not depend on {dependency}");
    }
    for needle in ["std::time", "std::net", "std::thread", "std::fs", "std::process", "std::env"] {
        assert_eq!(offenders(needle, "proto/src", &[]), [""; 0], "{needle} in proto");
    }
}

#[test]
fn the_layers_of_proto_keep_their_order() {
    for needle in ["crate::link", "crate::congestion", "crate::device"] {
        assert_eq!(offenders(needle, "proto/src/wire", &[]), [""; 0], "wire imports {needle}");
    }
    assert_eq!(offenders("crate::congestion", "proto/src/link", &[]), [""; 0]);
    assert_eq!(offenders("crate::link", "proto/src/congestion", &[]), [""; 0]);
}

#[test]
fn a_scheme_never_imports_a_scheme() {
    let names: Vec<&str> =
        proto::congestion::schemes::SCHEMES.iter().map(|scheme| scheme.name).collect();
    for (file, text) in sources() {
        let Some(own) = file.strip_prefix("proto/src/congestion/schemes/") else { continue };
        let own = own.split(['/', '.']).next().unwrap_or_default();
        for other in names.iter().map(|name| name.replace('-', "_")) {
            // `none` is the absence of a role, which every scheme may need.
            if other == own || other == "none" {
                continue;
            }
            let imports = code(&text).any(|line| {
                line.contains(&format!("schemes::{other}"))
                    || line.contains(&format!("super::{other}"))
            });
            assert!(!imports, "{file} imports {other}");
        }
    }
}

#[test]
fn only_the_shells_of_the_daemons_know_emulation() {
    assert_eq!(offenders("emulation::", "switchd/src", &["switchd/src/main.rs"]), [""; 0]);
    assert_eq!(offenders("emulation::", "nicd/src", &["nicd/src/main.rs"]), [""; 0]);
}

#[test]
fn each_door_to_the_operating_system_is_in_one_room() {
    let clock = &["emulation/src/clock.rs"];
    for needle in ["Instant::now(", "SystemTime::now(", "clock_gettime("] {
        assert_eq!(offenders(needle, "", clock), [""; 0], "{needle} outside the clock");
    }
    for needle in ["thread::sleep", "time::sleep", "nanosleep(", "ppoll("] {
        assert_eq!(offenders(needle, "", &["emulation/src/timer.rs"]), [""; 0], "{needle}");
    }
    for needle in ["UdpSocket", "UnixDatagram", "libc::socket(", "Socket::new("] {
        assert_eq!(offenders(needle, "", &["emulation/src/cable"]), [""; 0], "{needle}");
    }
    let launch = &["topo/src/launch"];
    assert_eq!(offenders("Command::new", "", launch), [""; 0], "child processes");
}

#[test]
fn every_file_begins_by_saying_what_it_is_for() {
    for (name, text) in sources() {
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 12, "{name} begins with {first:?}");
    }
}

#[test]
fn no_file_outgrows_its_readers() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        let limit = if is_test(&name) { 700 } else { 500 };
        assert!(lines <= limit, "{name} has {lines} lines; past {limit} the cut is wrong");
    }
}

#[test]
fn parent_files_stand_beside_their_folders_and_have_telling_names() {
    let vague = ["utils", "helpers", "common", "types", "manager", "misc", "mod"];
    for (name, _) in sources() {
        let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        assert!(!vague.contains(&stem.as_str()), "{name} does not say what it is");
    }
}

#[test]
fn engines_name_their_sources() {
    let rooms = ["proto/src/link/credit", "proto/src/link/vl_arbiter", "proto/src/wire/infiniband"];
    for (name, text) in sources() {
        let engine = rooms.iter().any(|room| name.starts_with(room));
        if engine && !is_test(&name) && text.lines().count() > 60 {
            assert!(text.contains("Source"), "{name} does not say which clause it implements");
        }
    }
}
