//! The Compose file of a lab: one service a process, a network of its own, no privilege.
//!
//! Text is put between double quotes as JSON has them, which YAML understands too.

use super::board::{self, Board};
use crate::placement::Hosting;
use daemon::join::TOKEN_VARIABLE;
use emulation::wiring::{NodeKind, Wiring};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Where a launcher listens in a lab's network.
pub const PORT: u16 = 4700;
/// The label that names the lab of a container or network.
pub const LAB_LABEL: &str = "pausebed.lab";
/// The label that names the launcher, as [`Owner`] says it.
pub const OWNER_LABEL: &str = "pausebed.launcher";
/// What networks are made to carry in one piece: any frame of ours, and several of the smaller.
pub const MTU: usize = 9000;
/// The service that launches, where it is one of the lab's own.
const LAUNCHER: &str = "launcher";
/// Services that no device may be named like.
const OWN_SERVICES: [&str; 3] = [LAUNCHER, board::PROMETHEUS, board::GRAFANA];

/// For whom a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `docker compose`: containers on one host.
    Compose,
    /// `docker stack deploy`: services on the machines of a swarm.
    Swarm,
}

/// Who starts the run and keeps its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// A process of this host, at the gateway of the lab's network.
    Outside,
    /// A service of the lab, which runs the scenario file with these further arguments.
    Service {
        /// The scenario file, as the engine finds it.
        file: String,
        /// `--set …` and the like.
        arguments: Vec<String>,
    },
}

/// A lab as containers.
#[derive(Clone, Debug)]
pub struct Lab<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// Names the lab's objects.
    pub id: &'a str,
    /// What a daemon shows to the launcher.
    pub token: &'a str,
    /// The image of all services.
    pub image: &'a str,
    /// Whose lab it is.
    pub owner: &'a str,
    /// The lab's network: 256 addresses from here.
    pub subnet: Ipv4Addr,
    /// Let daemons ask for real-time priority.
    pub realtime: bool,
    /// Where the launcher is.
    pub launcher: &'a Launcher,
    /// Who watches the daemons, if anybody shall.
    pub board: Option<&'a Board>,
}

/// Writes the file.
pub fn render(lab: &Lab<'_>, engine: Engine, wiring: &Wiring, hosting: &Hosting) -> String {
    let mut text = String::new();
    head(&mut text, lab, engine);
    text.push_str("services:\n");
    if let Launcher::Service { file, arguments } = lab.launcher {
        launcher(&mut text, lab, engine, file, arguments);
    }
    let names = service_names(wiring, hosting);
    for (process, name) in names.iter().enumerate() {
        daemon(&mut text, lab, engine, process, hosting.kinds[process], name);
    }
    if let Some(board) = lab.board {
        board.services(&mut text, lab);
    }
    network(&mut text, lab, engine);
    if let (Engine::Swarm, Launcher::Service { file, .. }) = (engine, lab.launcher) {
        let _ = write!(text, "configs:\n  scenario:\n    file: {}\n", quoted(file));
    }
    text
}

/// The name of every daemon's service, by process.
pub fn service_names(wiring: &Wiring, hosting: &Hosting) -> Vec<String> {
    let processes = hosting.kinds.iter().enumerate();
    let name = |(process, kind): (usize, &NodeKind)| {
        let nodes: Vec<&str> =
            hosting.nodes(process).map(|node| wiring.nodes[node].name.as_str()).collect();
        match nodes.as_slice() {
            [only] if is_service_name(only) => (*only).to_owned(),
            _ => format!("{}-{process}", program(*kind)),
        }
    };
    processes.map(name).collect()
}

const fn program(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Switch => "switchd",
        NodeKind::Nic => "nicd",
    }
}

/// Text as YAML and Compose take it literally: a dollar would begin a variable.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('$', "$$")
}

fn head(text: &mut String, lab: &Lab<'_>, engine: Engine) {
    let name = lab.scenario.replace(char::is_control, " ");
    let (tool, verb) = match engine {
        Engine::Compose => ("docker compose", "docker compose -f THIS up"),
        Engine::Swarm => ("docker stack", "docker stack deploy -c THIS NAME"),
    };
    let _ = write!(
        text,
        "# pausebed: {name}, for {tool}. Made by the command pausebed compose; make it again, do not edit.\n\
         # {verb}\n\
         version: \"3.8\"\n"
    );
}

fn launcher(text: &mut String, lab: &Lab<'_>, engine: Engine, file: &str, arguments: &[String]) {
    let mut words = vec!["run".to_owned(), "/scenario.toml".to_owned()];
    words.extend(["--backend".to_owned(), "remote".to_owned(), "--no-report".to_owned()]);
    words.extend(arguments.iter().cloned());
    begin_service(text, lab, engine, LAUNCHER, lab.image, &words);
    let _ = write!(
        text,
        "    environment:\n      {TOKEN_VARIABLE}: {}\n      PAUSEBED_LISTEN: \"0.0.0.0:{PORT}\"\n",
        quoted(lab.token)
    );
    // Scratch files of the run, in memory. Swarms know no other form of this.
    text.push_str("    volumes:\n      - type: tmpfs\n        target: /tmp\n");
    match engine {
        Engine::Compose => {
            let _ = writeln!(text, "      - {}", quoted(&format!("{file}:/scenario.toml:ro")));
        }
        Engine::Swarm => {
            text.push_str(
                "    configs:\n      - source: scenario\n        target: /scenario.toml\n",
            );
        }
    }
}

fn daemon(
    text: &mut String,
    lab: &Lab<'_>,
    engine: Engine,
    process: usize,
    kind: NodeKind,
    name: &str,
) {
    let launcher = match lab.launcher {
        Launcher::Outside => gateway(lab.subnet).to_string(),
        Launcher::Service { .. } => LAUNCHER.to_owned(),
    };
    let mut words = vec![
        program(kind).to_owned(),
        "--join".to_owned(),
        format!("{launcher}:{PORT}"),
        "--process".to_owned(),
        process.to_string(),
    ];
    if lab.board.is_some() {
        words.extend(["--admin".to_owned(), board::target(name)]);
    }
    begin_service(text, lab, engine, name, lab.image, &words);
    let _ = writeln!(text, "    environment:\n      {TOKEN_VARIABLE}: {}", quoted(lab.token));
    if lab.realtime {
        // To go ahead of others. The limit that would let a user without capabilities do so is refused
        // by engines that may not raise limits themselves.
        text.push_str("    user: \"0:0\"\n    cap_add: [\"SYS_NICE\"]\n");
    }
}

/// What all services have in common.
pub(super) fn begin_service(
    text: &mut String,
    lab: &Lab<'_>,
    engine: Engine,
    name: &str,
    image: &str,
    words: &[String],
) {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let _ = write!(
        text,
        "  {name}:\n    image: {}\n    command: [{}]\n    read_only: true\n    \
         cap_drop: [\"ALL\"]\n    stop_signal: SIGKILL\n    networks: [\"fabric\"]\n",
        quoted(image),
        words.join(", "),
    );
    match engine {
        Engine::Compose => {
            let _ = write!(
                text,
                "    security_opt: [\"no-new-privileges:true\"]\n    restart: \"no\"\n    labels:\n      \
                 {LAB_LABEL}: {}\n      {OWNER_LABEL}: {}\n",
                quoted(lab.id),
                quoted(lab.owner),
            );
        }
        // Names lead to tasks and not to a virtual address, which would need IPVS.
        Engine::Swarm => text.push_str(
            "    deploy:\n      endpoint_mode: dnsrr\n      restart_policy:\n        condition: none\n",
        ),
    }
}

fn network(text: &mut String, lab: &Lab<'_>, engine: Engine) {
    let driver = match engine {
        Engine::Compose => "bridge",
        Engine::Swarm => "overlay",
    };
    let _ = write!(
        text,
        "networks:\n  fabric:\n    driver: {driver}\n    driver_opts:\n      \
         com.docker.network.driver.mtu: \"{MTU}\"\n    ipam:\n      config:\n        - subnet: \"{}/24\"\n",
        lab.subnet
    );
    if engine == Engine::Compose {
        let _ = write!(
            text,
            "    labels:\n      {LAB_LABEL}: {}\n      {OWNER_LABEL}: {}\n",
            quoted(lab.id),
            quoted(lab.owner)
        );
    }
}

/// The address of the host in a lab's network: the first, as Docker has it.
pub fn gateway(subnet: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(subnet) + 1)
}

/// Whether engine and DNS take a node's name for a service's.
fn is_service_name(name: &str) -> bool {
    let plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !OWN_SERVICES.contains(&name)
        && name.len() <= 40
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests;
