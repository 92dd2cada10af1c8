//! What all services of a lab of containers have in common.
//!
//! Strings are written between double quotes as in JSON, which YAML reads too.

use std::fmt::Write as _;

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

/// Quotes a string for YAML and Compose, where a dollar begins a variable.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('$', "$$")
}

impl Labels<'_> {
    /// Writes the labels of a container or network.
    pub(super) fn write(&self, text: &mut String) {
        let (lab, owner) = (quoted(self.id), quoted(self.owner));
        let _ =
            write!(text, "    labels:\n      {LAB_LABEL}: {lab}\n      {OWNER_LABEL}: {owner}\n");
    }

    /// Writes the beginning of a service: its image, its command, and no privileges.
    pub(super) fn begin_service(
        &self,
        text: &mut String,
        engine: Engine,
        name: &str,
        image: &str,
        command: &[String],
    ) {
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        let _ = write!(
            text,
            "  {name}:\n    image: {}\n    command: [{}]\n    read_only: true\n    \
             cap_drop: [\"ALL\"]\n    stop_signal: SIGKILL\n    networks: [\"fabric\"]\n",
            quoted(image),
            words.join(", "),
        );
        match engine {
            Engine::Compose => {
                text.push_str("    security_opt: [\"no-new-privileges:true\"]\n    restart: \"no\"\n");
                self.write(text);
            }
            // Names resolve to tasks and not to a virtual address, which would need IPVS.
            Engine::Swarm => text.push_str(
                "    deploy:\n      endpoint_mode: dnsrr\n      restart_policy:\n        condition: none\n",
            ),
        }
    }
}
