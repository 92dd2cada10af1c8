//! What all services of a lab of containers have in common.
//!
//! The file is JSON, which is YAML.

use serde_json::{Value, json};

/// The label that names the lab of a container or network.
const LAB_LABEL: &str = "pausebed.lab";
/// The label that names the launcher's process.
pub(super) const OWNER_LABEL: &str = "pausebed.launcher";

/// The program that reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `docker compose`: containers on one host.
    Compose,
    /// `docker stack deploy`: services on the machines of a swarm.
    Swarm,
}

/// The labels of a lab's containers and network.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The lab's identifier.
    pub id: &'a str,
    /// The launcher's process; empty in a file for others to start.
    pub owner: &'a str,
}

/// A string for Compose, where a dollar begins a variable.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

impl Labels<'_> {
    /// The labels of a container or network.
    pub(super) fn object(&self) -> Value {
        json!({ LAB_LABEL: literal(self.id), OWNER_LABEL: literal(self.owner) })
    }

    /// A service with this image and command, and without privileges.
    pub(super) fn service(&self, engine: Engine, image: &str, command: &[String]) -> Value {
        let command: Vec<String> = command.iter().map(|word| literal(word)).collect();
        let mut service = json!({
            "image": literal(image),
            "command": command,
            "read_only": true,
            "cap_drop": ["ALL"],
            "stop_signal": "SIGKILL",
            "networks": ["fabric"],
        });
        match engine {
            Engine::Compose => {
                service["security_opt"] = json!(["no-new-privileges:true"]);
                service["restart"] = json!("no");
                service["labels"] = self.object();
            }
            // Names resolve to tasks and not to a virtual address, which would need IPVS.
            Engine::Swarm => {
                let restart = json!({ "condition": "none" });
                service["deploy"] = json!({ "endpoint_mode": "dnsrr", "restart_policy": restart });
            }
        }
        service
    }
}
