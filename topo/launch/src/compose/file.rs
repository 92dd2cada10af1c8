//! The Compose file of a lab: one service for each process, a network of its own, no privileges.

use super::monitoring::{self, Monitoring};
use super::service::{Engine, Labels, literal};
use crate::placement::Hosting;
use crate::processes::role;
use daemon::join::TOKEN_VARIABLE;
use emulation::wiring::{NodeKind, Wiring};
use ipnetwork::Ipv4Network;
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;

/// The port at which the launcher listens in a lab's network.
pub(super) const PORT: u16 = 4700;
/// The MTU of a lab's network: any frame of the emulation fits, and several of the smaller ones.
const MTU: usize = 9000;
/// The name of the launcher's service, in a file that has one.
const LAUNCHER: &str = "launcher";
/// Where a launcher's container has the folder for run directories.
const OUT: &str = "/out";
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
        /// Where it writes run directories, if wanted.
        out: Option<OutFolder>,
    },
}

/// A folder for run directories, on the machine of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutFolder {
    /// Its path for the engine.
    pub path: String,
    /// The user and the group that write there.
    pub owner: (u32, u32),
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
    /// Its network.
    pub subnet: Ipv4Network,
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
    let (tool, verb, driver) = match engine {
        Engine::Compose => ("docker compose", "docker compose -f THIS up", "bridge"),
        Engine::Swarm => ("docker stack", "docker stack deploy -c THIS NAME", "overlay"),
    };
    let mut services = Map::new();
    if let Launcher::Service { file, arguments, out } = lab.launcher {
        let launcher = lab.launcher(engine, file, arguments, out.as_ref());
        services.insert(LAUNCHER.to_owned(), launcher);
    }
    for (process, name) in service_names(wiring, hosting).into_iter().enumerate() {
        let daemon = lab.daemon(engine, process, hosting.kinds[process], &name);
        services.insert(name, daemon);
    }
    services.extend(lab.monitoring.iter().flat_map(|monitoring| monitoring.services(lab.labels)));
    let mut network = json!({
        "driver": driver,
        "driver_opts": { "com.docker.network.driver.mtu": MTU.to_string() },
        "ipam": { "config": [{ "subnet": lab.subnet.to_string() }] },
    });
    if engine == Engine::Compose {
        network["labels"] = lab.labels.object();
    }
    let networks = json!({ "fabric": network });
    let mut file = json!({ "version": "3.8", "services": services, "networks": networks });
    if let (Engine::Swarm, Launcher::Service { file: scenario, .. }) = (engine, lab.launcher) {
        file["configs"] = json!({ "scenario": { "file": literal(scenario) } });
    }
    let name = lab.scenario.replace(char::is_control, " ");
    format!(
        "# pausebed: {name}, for {tool}. Made by the command pausebed compose; make it again, do not edit.\n\
         # {verb}\n{file:#}\n"
    )
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

impl ContainerLab<'_> {
    fn launcher(
        &self,
        engine: Engine,
        file: &str,
        arguments: &[String],
        out: Option<&OutFolder>,
    ) -> Value {
        let run = ["run", "/scenario.toml", "--backend", "remote"];
        let result: &[&str] = if out.is_some() { &["--out", OUT] } else { &["--no-report"] };
        let words = run.iter().chain(result).map(|word| (*word).to_owned());
        let words: Vec<String> = words.chain(arguments.iter().cloned()).collect();
        let mut service = self.labels.service(engine, self.image, &words);
        let listen = format!("0.0.0.0:{PORT}");
        service["environment"] =
            json!({ TOKEN_VARIABLE: literal(self.token), "PAUSEBED_LISTEN": listen });
        // Scratch files of the run are in memory. Swarms accept no other form of this.
        let mut volumes = vec![json!({ "type": "tmpfs", "target": "/tmp" })];
        match engine {
            Engine::Compose => volumes.push(literal(&format!("{file}:/scenario.toml:ro")).into()),
            Engine::Swarm => {
                service["configs"] = json!([{ "source": "scenario", "target": "/scenario.toml" }]);
            }
        }
        if let Some(OutFolder { path, owner: (user, group) }) = out {
            service["user"] = json!(format!("{user}:{group}"));
            volumes.push(json!({ "type": "bind", "source": literal(path), "target": OUT }));
        }
        service["volumes"] = volumes.into();
        service
    }

    fn daemon(&self, engine: Engine, process: usize, kind: NodeKind, name: &str) -> Value {
        let launcher = match self.launcher {
            Launcher::Outside => gateway(self.subnet).to_string(),
            Launcher::Service { .. } => LAUNCHER.to_owned(),
        };
        let (launcher, process) = (format!("{launcher}:{PORT}"), process.to_string());
        let words = [role(kind), "--join", &launcher, "--process", &process];
        let mut words = words.map(str::to_owned).to_vec();
        if self.monitoring.is_some() {
            words.extend(["--admin".to_owned(), monitoring::target(name)]);
        }
        let mut service = self.labels.service(engine, self.image, &words);
        service["environment"] = json!({ TOKEN_VARIABLE: literal(self.token) });
        if self.realtime {
            // Real-time priority takes a capability: engines without the right to raise limits refuse the
            // rtprio limit.
            service["user"] = json!("0:0");
            service["cap_add"] = json!(["SYS_NICE"]);
        }
        service
    }
}

/// The address of the host in a lab's network: Docker gives it the first.
pub(super) fn gateway(subnet: Ipv4Network) -> Ipv4Addr {
    Ipv4Addr::from_bits(subnet.network().to_bits() + 1)
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
