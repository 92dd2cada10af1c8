//! The Compose file of a lab: one service for each process, a network of its own, no privileges.

use super::monitoring::{self, Monitoring};
use super::service::{Engine, Labels, quoted};
use crate::placement::Hosting;
use crate::processes::role;
use daemon::join::TOKEN_VARIABLE;
use emulation::wiring::{NodeKind, Wiring};
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
    let mut writer = Writer { text: String::new(), lab, engine };
    writer.head();
    if let Launcher::Service { file, arguments } = lab.launcher {
        writer.launcher(file, arguments);
    }
    let names = service_names(wiring, hosting);
    for (process, name) in names.iter().enumerate() {
        writer.daemon(process, hosting.kinds[process], name);
    }
    if let Some(monitoring) = lab.monitoring {
        monitoring.services(&mut writer.text, lab.labels);
    }
    writer.network();
    if let (Engine::Swarm, Launcher::Service { file, .. }) = (engine, lab.launcher) {
        writer.add(&format!("configs:\n  scenario:\n    file: {}\n", quoted(file)));
    }
    writer.text
}

/// The service names of all daemons, by process.
pub fn service_names(wiring: &Wiring, hosting: &Hosting) -> Vec<String> {
    let processes = hosting.kinds.iter().enumerate();
    let name = |(process, kind): (usize, &NodeKind)| {
        let nodes: Vec<&str> =
            hosting.nodes(process).map(|node| wiring.nodes[node].name.as_str()).collect();
        match nodes.as_slice() {
            [only] if is_service_name(only) => (*only).to_owned(),
            _ => format!("{}-{process}", role(*kind)),
        }
    };
    processes.map(name).collect()
}

/// The text so far, and what all its parts depend on.
struct Writer<'a> {
    text: String,
    lab: &'a ContainerLab<'a>,
    engine: Engine,
}

impl Writer<'_> {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn head(&mut self) {
        let name = self.lab.scenario.replace(char::is_control, " ");
        let (tool, verb) = match self.engine {
            Engine::Compose => ("docker compose", "docker compose -f THIS up"),
            Engine::Swarm => ("docker stack", "docker stack deploy -c THIS NAME"),
        };
        self.add(&format!(
            "# pausebed: {name}, for {tool}. Made by the command pausebed compose; make it again, do not edit.\n\
             # {verb}\nversion: \"3.8\"\nservices:\n"
        ));
    }

    fn begin_service(&mut self, name: &str, command: &[String]) {
        let ContainerLab { labels, image, token, .. } = self.lab;
        labels.begin_service(&mut self.text, self.engine, name, image, command);
        self.add(&format!("    environment:\n      {TOKEN_VARIABLE}: {}\n", quoted(token)));
    }

    fn launcher(&mut self, file: &str, arguments: &[String]) {
        let words = ["run", "/scenario.toml", "--backend", "remote", "--no-report"];
        let words = words.map(str::to_owned).into_iter().chain(arguments.iter().cloned());
        self.begin_service(LAUNCHER, &words.collect::<Vec<_>>());
        // Scratch files of the run are in memory. Swarms accept no other form of this.
        self.add(&format!(
            "      PAUSEBED_LISTEN: \"0.0.0.0:{PORT}\"\n    volumes:\n      - type: tmpfs\n        target: /tmp\n"
        ));
        match self.engine {
            Engine::Compose => {
                self.add(&format!("      - {}\n", quoted(&format!("{file}:/scenario.toml:ro"))));
            }
            Engine::Swarm => {
                self.add("    configs:\n      - source: scenario\n        target: /scenario.toml\n")
            }
        }
    }

    fn daemon(&mut self, process: usize, kind: NodeKind, name: &str) {
        let launcher = match self.lab.launcher {
            Launcher::Outside => gateway(self.lab.subnet).to_string(),
            Launcher::Service { .. } => LAUNCHER.to_owned(),
        };
        let (launcher, process) = (format!("{launcher}:{PORT}"), process.to_string());
        let words = [role(kind), "--join", &launcher, "--process", &process];
        let mut words = words.map(str::to_owned).to_vec();
        if self.lab.monitoring.is_some() {
            words.extend(["--admin".to_owned(), monitoring::target(name)]);
        }
        self.begin_service(name, &words);
        if self.lab.realtime {
            // Real-time priority takes a capability: engines without the right to raise limits refuse the
            // rtprio limit.
            self.add("    user: \"0:0\"\n    cap_add: [\"SYS_NICE\"]\n");
        }
    }

    fn network(&mut self) {
        let driver = match self.engine {
            Engine::Compose => "bridge",
            Engine::Swarm => "overlay",
        };
        self.add(&format!(
            "networks:\n  fabric:\n    driver: {driver}\n    driver_opts:\n      \
             com.docker.network.driver.mtu: \"{MTU}\"\n    ipam:\n      config:\n        - subnet: \"{}/24\"\n",
            self.lab.subnet
        ));
        if self.engine == Engine::Compose {
            self.lab.labels.write(&mut self.text);
        }
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
