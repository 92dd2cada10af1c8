//! What this host can do: each backend, virtual machines, and the one command that enables what is missing.

use super::{Check, State};
use crate::terminal::table::table;
use daemon::privileges;
use host::image::Image;
use launch::{RIGHTS_OF_NETNS, compose, programs};
use serde::Serialize;
use std::ffi::OsStr;
use std::fs;

/// One row: something that can be done here or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Possible {
    /// A backend, or `vm` for hosts in virtual machines.
    pub what: &'static str,
    /// What it is.
    pub about: &'static str,
    /// The command that enables it; none if it can be used.
    pub command: Option<String>,
}

/// Every row.
pub fn possible(checks: &[Check]) -> Vec<Possible> {
    let row = |what, about, command| Possible { what, about, command };
    vec![
        row("virtual", "exact runs in one process", None),
        row("udp", "live runs over sockets", udp(checks)),
        row("netns", "a network namespace a device", netns()),
        row("compose", "a container a process", containers()),
        row("remote", "daemons on several machines", udp(checks)),
        row("vm", "virtual machines as hosts", machines()),
    ]
}

/// The rows as a table.
pub fn text(rows: &[Possible]) -> String {
    let cells = rows.iter().map(|row| match &row.command {
        None => [row.what, row.about, "✓ yes", ""],
        Some(command) => [row.what, row.about, "✕ no", command],
    });
    table(&["backend", "what it is", "here", "this enables it"], [], cells)
}

/// Sockets, and a folder for them.
fn udp(checks: &[Check]) -> Option<String> {
    let bad = checks.iter().find(|check| check.state == State::Bad)?;
    Some(match bad.what {
        "UDP on loopback" => "ip link set lo up".to_owned(),
        "temporary folder" => "export TMPDIR=FOLDER (one that can be written)".to_owned(),
        other => format!("see {other} above"),
    })
}

/// The capabilities, or a user namespace, which is tried in a process of its own.
fn netns() -> Option<String> {
    let words = ["--user", "--map-root-user", "--net", "true"].map(OsStr::new);
    let is_possible = || programs::run("unshare", &words).is_ok_and(|(good, _)| good);
    if privileges::missing(&RIGHTS_OF_NETNS).is_empty() || is_possible() {
        return None;
    }
    // The keys with which kernels and distributions forbid user namespaces, and the value that permits them.
    let keys = [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
    ];
    let is_set = |(key, forbids, _): &&(&str, &str, &str)| {
        let file = format!("/proc/sys/{}", key.replace('.', "/"));
        fs::read_to_string(file).is_ok_and(|value| value.trim() == *forbids)
    };
    Some(match keys.iter().find(is_set) {
        Some((key, _, permits)) => format!("sudo sysctl -w {key}={permits}"),
        None => "sudo pausebed run FILE --backend netns".to_owned(),
    })
}

/// An engine that answers, its Compose, and the image of this version.
fn containers() -> Option<String> {
    let has = |program: &str| programs::tool(program).is_ok();
    let command = match compose::engine_answers() {
        true if compose::has_image() => return None,
        true => "docker/build.sh",
        false if !has("docker") => "sudo apt-get install docker.io docker-compose",
        false if !has("docker-compose") => "sudo apt-get install docker-compose",
        false => "sudo systemctl start docker",
    };
    Some(command.to_owned())
}

/// QEMU and an image.
fn machines() -> Option<String> {
    if programs::tool("qemu-system-x86_64").is_err() {
        return Some("sudo apt-get install qemu-system-x86".to_owned());
    }
    Image::find(None).err().map(|_| "pausebed vm build".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_has_a_row_and_what_is_missing_has_a_command() {
        let rows =
            possible(&[Check { what: "UDP on loopback", ..Check::bad("no answer", "do this") }]);
        let names: Vec<&str> = rows.iter().map(|row| row.what).collect();
        assert!(launch::BACKENDS.iter().all(|backend| names.contains(&backend.name)), "{names:?}");
        let of =
            |what| rows.iter().find(|row| row.what == what).and_then(|row| row.command.clone());
        assert_eq!(of("udp").as_deref(), Some("ip link set lo up"));
        assert_eq!(of("virtual"), None);
        assert!(text(&rows).contains("ip link set lo up"));
    }

    #[test]
    fn a_host_without_bad_checks_has_sockets() {
        let good = [Check { what: "cores", ..Check::good("2") }];
        assert_eq!(udp(&good), None);
    }
}
