//! Docker through its command line: networks and containers are listed, made, started and removed.

use super::service::OWNER_LABEL;
use crate::error::OrHost;
use crate::owner::{ProcessIdentity, pid_namespace};
use crate::{LaunchError, interrupt, with_sources};
use daemon::join::boot;
use ipnetwork::Ipv4Network;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An engine that answers, and its Compose command.
#[derive(Clone, Debug)]
pub struct Docker {
    /// Program and first arguments: `docker compose`, or the older `docker-compose`.
    compose: &'static [&'static str],
}

/// The network and the containers of a lab.
#[derive(Debug)]
pub struct Project<'a> {
    docker: &'a Docker,
    name: String,
    file: PathBuf,
    is_up: bool,
}

/// Runs a program and returns its output, or else its error messages.
///
/// The program runs in its own process group: this program handles Ctrl-C, and must finish its cleanup then.
#[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
fn output_of(words: &[&str]) -> Result<String, LaunchError> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).process_group(0);
    let output = command.output().or_host(format!("cannot run {}", words[0]))?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        // Ctrl-C may be the reason.
        false if interrupt::requested() => Err(LaunchError::interrupted()),
        false => Err(LaunchError::host(format!("{}: {}", words[0], text(&output.stderr)))),
    }
}

/// This launcher, as labels name it: the boot identifier, its PID namespace, and its process.
pub fn owner() -> String {
    let process = ProcessIdentity::this().and_then(|process| Ok((pid_namespace()?, process)));
    process.map_or_else(
        |_| String::new(),
        |(namespace, process)| format!("{} {namespace} .{process}", boot()),
    )
}

/// Whether the launcher of a label has ended for certain.
fn has_ended(owner: &str) -> bool {
    // A launcher of another machine that shares the engine is unknown here, and so is one in another container: its
    // process ids mean nothing here.
    let Ok(namespace) = pid_namespace() else { return false };
    let process = owner.strip_prefix(&format!("{} {namespace} ", boot()));
    process.and_then(ProcessIdentity::named).is_some_and(|process| !process.is_alive())
}

impl Docker {
    /// The engine that the environment names.
    ///
    /// # Errors
    /// If no engine answers, with a hint.
    pub fn find() -> Result<Docker, LaunchError> {
        output_of(&["docker", "version", "--format", "{{.Server.Version}}"]).or_host("no Docker engine answers\n    hint: install docker.io and docker-compose, start the engine, \
                 and get access to it (group docker, or DOCKER_HOST)\n    reason")?;
        let commands: [&'static [&'static str]; 2] = [&["docker", "compose"], &["docker-compose"]];
        let works = |command: &&&[&str]| output_of(&[command, &["version"][..]].concat()).is_ok();
        let compose = commands.iter().find(works).ok_or_else(|| {
            let hint = "install docker-compose, or Docker's compose plugin";
            LaunchError::host(format!("Docker has no Compose here\n    hint: {hint}"))
        })?;
        Ok(Docker { compose })
    }

    /// Makes sure that an image exists.
    ///
    /// # Errors
    /// If it does not, with a hint.
    pub(crate) fn require_image(&self, image: &str) -> Result<(), LaunchError> {
        let found = output_of(&["docker", "image", "inspect", "--format", "{{.Id}}", image]);
        let missing = format!(
            "there is no image {image}\n    hint: make it with docker/build.sh\n    reason"
        );
        found.map(|_| ()).or_host(missing)
    }

    /// Removes the labs of launchers that ended without doing so.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub fn remove_leftovers(&self) -> Result<(), LaunchError> {
        let format = format!("{{{{.ID}}}}\t{{{{.Label \"{OWNER_LABEL}\"}}}}");
        let filter = format!("label={OWNER_LABEL}");
        let lists: [(&[&str], &[&str]); 2] = [
            (&["docker", "ps", "--all"], &["docker", "rm", "--force"]),
            (&["docker", "network", "ls"], &["docker", "network", "rm"]),
        ];
        for (list, remove) in lists {
            let words =
                [list, &["--no-trunc", "--filter", &filter, "--format", &format][..]].concat();
            for line in output_of(&words)?.lines() {
                let Some((object, owner)) = line.split_once('\t') else { continue };
                if has_ended(owner)
                    && let Err(error) = output_of(&[remove, &[object][..]].concat())
                {
                    eprintln!(
                        "cannot remove {object} of a killed launcher: {}",
                        with_sources(&error)
                    );
                }
            }
        }
        Ok(())
    }

    /// The IPv4 networks of the engine.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub(crate) fn subnets(&self) -> Result<Vec<Ipv4Network>, LaunchError> {
        let networks = output_of(&["docker", "network", "ls", "--quiet"])?;
        let format = "{{range .IPAM.Config}}{{println .Subnet}}{{end}}";
        let mut words = vec!["docker", "network", "inspect", "--format", format];
        words.extend(networks.lines());
        Ok(output_of(&words)?.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    /// Makes the network and the containers of a lab, and starts none of them.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn create(&self, id: &str, file: &Path) -> Result<Project<'_>, LaunchError> {
        let name = format!("pausebed-{id}");
        let project = Project { docker: self, name, file: file.to_owned(), is_up: true };
        // If this fails, dropping the project removes what was made.
        project.compose(&["up", "--no-start"])?;
        Ok(project)
    }
}

impl Project<'_> {
    fn compose(&self, words: &[&str]) -> Result<String, LaunchError> {
        let file = self.file.to_string_lossy();
        let common = ["--project-name", &self.name, "--file", &file];
        output_of(&[self.docker.compose, &common[..], words].concat())
    }

    /// Starts the containers.
    ///
    /// # Errors
    /// If one does not start.
    pub fn start(&self) -> Result<(), LaunchError> {
        self.compose(&["start"]).map(|_| ())
    }

    /// The last log lines of the containers, as an appendix to an error.
    pub(crate) fn last_log_lines(&self) -> String {
        match self.compose(&["logs", "--no-color", "--tail", "5"]) {
            Ok(text) if !text.trim().is_empty() => format!("\n{}", text.trim_end()),
            _ => String::new(),
        }
    }

    /// Removes containers and network.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn down(&mut self) -> Result<(), LaunchError> {
        self.is_up = false;
        self.compose(&["down", "--volumes", "--timeout", "0"])
            .map(|_| ())
            .or_host(format!("cannot remove the containers of {}", self.name))
    }
}

impl Drop for Project<'_> {
    fn drop(&mut self) {
        if self.is_up {
            // After an error or a panic; an ordinary end has called `down` already.
            let _ = self.down();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_that_share_addresses_overlap() {
        let own: Ipv4Network = "198.18.7.0/24".parse().expect("a network");
        for (text, expected) in [
            ("198.18.7.0/24", true),
            ("198.18.7.128/25", true),
            ("198.18.0.0/16", true),
            ("198.18.6.0/24", false),
            ("172.17.0.0/16", false),
            ("0.0.0.0/0", true),
        ] {
            let other: Ipv4Network = text.parse().expect("a network");
            assert_eq!(other.overlaps(own), expected, "{text}");
        }
        assert!("fd00::/64".parse::<Ipv4Network>().is_err());
    }

    #[test]
    fn a_living_launcher_has_not_ended() {
        assert!(!has_ended(&owner()) && !has_ended("") && !has_ended("another-machine .1.2"));
        let namespace = pid_namespace().expect("/proc is there");
        assert!(has_ended(&format!("{} {namespace} .1.1", boot())));
        let elsewhere = namespace ^ 1;
        assert!(!has_ended(&format!("{} {elsewhere} .1.1", boot())), "another CI job's container");
        assert!(!has_ended(&format!("{} .1.1", boot())), "a label without a namespace");
    }
}
