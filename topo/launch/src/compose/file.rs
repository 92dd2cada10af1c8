//! The Compose file of a lab: one service for each process, a network of its own, no privileges.

use super::monitoring::{self, Monitoring};
use super::service::{Engine, Labels, quoted};
use crate::placement::Hosting;
use daemon::join::TOKEN_VARIABLE;
use emulation::wiring::{NodeKind, Wiring};
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// The port at which the launcher listens in a lab's network.
pub(super) const PORT: u16 = 4700;
/// The MTU of a lab's network: any frame of the emulation fits, and several of the smaller ones.
const MTU: usize = 9000;
/// The name of the launcher's service, in a file that has one.
const LAUNCHER: &str = "launcher";
/// Service names that no device can have.
const RESERVED: [&str; 3] = [LAUNCHER, monitoring::PROMETHEUS, monitoring::GRAFANA];

/// The place of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// A process of this host, reached at the gateway of the lab's network.
    Outside,
    /// A service of the lab, which runs the scenario file with these further arguments.
    Service {
        /// The path of the scenario file for the engine.
        file: String,
        /// `--set …` and the like.
        arguments: Vec<String>,
    },
}

/// A lab of containers.
#[derive(Clone, Debug)]
pub struct ContainerLab<'a> {
    /// The scenario's name.
    pub scenario: &'a str,
    /// The labels of its containers and network.
    pub labels: Labels<'a>,
    /// The secret with which a daemon joins the launcher.
    pub token: &'a str,
    /// The image of all services.
    pub image: &'a str,
    /// The first of the 256 addresses of its network.
    pub subnet: Ipv4Addr,
    /// Let daemons ask for real-time priority.
    pub realtime: bool,
    /// The place of the launcher.
    pub launcher: &'a Launcher,
    /// Prometheus and Grafana, if wanted.
    pub monitoring: Option<&'a Monitoring>,
}

/// The text of the file.
pub fn render(
    lab: &ContainerLab<'_>,
    engine: Engine,
    wiring: &Wiring,
    hosting: &Hosting,
) -> String {
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
    if let Some(monitoring) = lab.monitoring {
        monitoring.services(&mut text, lab.labels);
    }
    network(&mut text, lab, engine);
    if let (Engine::Swarm, Launcher::Service { file, .. }) = (engine, lab.launcher) {
        let _ = write!(text, "configs:\n  scenario:\n    file: {}\n", quoted(file));
    }
    text
}

/// The service names of all daemons, by process.
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

fn head(text: &mut String, lab: &ContainerLab<'_>, engine: Engine) {
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

fn launcher(
    text: &mut String,
    lab: &ContainerLab<'_>,
    engine: Engine,
    file: &str,
    arguments: &[String],
) {
    let mut words = vec!["run".to_owned(), "/scenario.toml".to_owned()];
    words.extend(["--backend".to_owned(), "remote".to_owned(), "--no-report".to_owned()]);
    words.extend(arguments.iter().cloned());
    lab.labels.begin_service(text, engine, LAUNCHER, lab.image, &words);
    let _ = write!(
        text,
        "    environment:\n      {TOKEN_VARIABLE}: {}\n      PAUSEBED_LISTEN: \"0.0.0.0:{PORT}\"\n",
        quoted(lab.token)
    );
    // Scratch files of the run, in memory. Swarms accept no other form of this.
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
    lab: &ContainerLab<'_>,
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
    if lab.monitoring.is_some() {
        words.extend(["--admin".to_owned(), monitoring::target(name)]);
    }
    lab.labels.begin_service(text, engine, name, lab.image, &words);
    let _ = writeln!(text, "    environment:\n      {TOKEN_VARIABLE}: {}", quoted(lab.token));
    if lab.realtime {
        // Real-time priority takes a capability: engines without the right to raise limits refuse the rtprio limit.
        text.push_str("    user: \"0:0\"\n    cap_add: [\"SYS_NICE\"]\n");
    }
}

fn network(text: &mut String, lab: &ContainerLab<'_>, engine: Engine) {
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
        lab.labels.write(text);
    }
}

/// The address of the host in a lab's network: Docker gives it the first.
pub(super) fn gateway(subnet: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(subnet) + 1)
}

/// Whether a node's name is valid as the name of a service, for the engine and for DNS.
fn is_service_name(name: &str) -> bool {
    let plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !RESERVED.contains(&name)
        && name.len() <= 40
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(plain)
}

#[cfg(test)]
mod tests;
