//! Docker as its own command line has it: what is there, made, started, removed.

use super::file::OWNER_LABEL;
use crate::{LaunchError, interrupt};
use daemon::join::boot;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An engine that answers, and the way to speak Compose to it.
#[derive(Clone, Debug)]
pub struct Docker {
    /// Program and first words: `docker compose`, or `docker-compose` of old.
    compose: &'static [&'static str],
}

/// What a lab has made.
#[derive(Debug)]
pub struct Project<'a> {
    docker: &'a Docker,
    name: String,
    file: PathBuf,
    is_up: bool,
}

/// A program's answer, or what it said instead.
///
/// It runs in a process group of its own: Ctrl-C is this program's to answer, and what it then removes
/// must not be interrupted half way.
#[expect(clippy::disallowed_methods, reason = "this is the room for child processes")]
fn ask(words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).process_group(0);
    let output = command.output().map_err(|error| format!("{}: {error}", words[0]))?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// What a program's refusal amounts to.
fn failed(reason: &str) -> LaunchError {
    match interrupt::requested() {
        true => LaunchError::Interrupted,
        false => LaunchError::Host(format!("Compose: {reason}")),
    }
}

/// This launcher, as labels name it: start of the machine, process, and when that began.
pub fn owner() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), began(pid).unwrap_or_default())
}

/// When a process began, in ticks since the machine's start: a number used again differs in this.
fn began(pid: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields are counted behind the name, which may hold anything (proc(5): the 22nd).
    let fields = text.rsplit_once(')')?.1;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

/// Whether the launcher of a label has ended for certain.
fn is_gone(owner: &str) -> bool {
    let mut words = owner.split(' ');
    let (Some(start), Some(pid), Some(since)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    if start != boot() {
        // Of another machine that shares the engine, perhaps. Not ours to judge.
        return false;
    }
    let Ok(pid) = pid.parse() else { return false };
    began(pid).is_none_or(|began| began != since)
}

impl Docker {
    /// The engine that the environment names.
    ///
    /// # Errors
    /// If none answers, with what to do.
    pub fn find() -> Result<Docker, LaunchError> {
        ask(&["docker", "version", "--format", "{{.Server.Version}}"]).map_err(|reason| {
            LaunchError::Host(format!(
                "no Docker engine answers: {reason}\n    hint: install docker.io and docker-compose, start \
                 the engine, and see that you may speak to it (group docker, or DOCKER_HOST)"
            ))
        })?;
        let ways: [&'static [&'static str]; 2] = [&["docker", "compose"], &["docker-compose"]];
        let works = |way: &&&[&str]| ask(&[way, &["version"][..]].concat()).is_ok();
        let compose = ways.iter().find(works).ok_or_else(|| {
            let hint = "install docker-compose, or Docker's compose plugin";
            LaunchError::Host(format!("Docker has no Compose here\n    hint: {hint}"))
        })?;
        Ok(Docker { compose })
    }

    /// Sees that an image is there.
    ///
    /// # Errors
    /// If it is not, with what to do.
    pub fn require_image(&self, image: &str) -> Result<(), LaunchError> {
        ask(&["docker", "image", "inspect", "--format", "{{.Id}}", image]).map(|_| ()).map_err(
            |_| {
                LaunchError::Host(format!(
                    "there is no image {image}\n    hint: make it with docker/build.sh"
                ))
            },
        )
    }

    /// Removes the labs of launchers that have ended without doing so.
    ///
    /// # Errors
    /// If the engine does not answer.
    pub fn sweep(&self) -> Result<(), LaunchError> {
        let format = format!("{{{{.ID}}}}\t{{{{.Label \"{OWNER_LABEL}\"}}}}");
        let filter = format!("label={OWNER_LABEL}");
        let lists: [(&[&str], &[&str]); 2] = [
            (&["docker", "ps", "--all"], &["docker", "rm", "--force"]),
            (&["docker", "network", "ls"], &["docker", "network", "rm"]),
        ];
        for (list, remove) in lists {
            let words =
                [list, &["--no-trunc", "--filter", &filter, "--format", &format][..]].concat();
            let text = ask(&words).map_err(LaunchError::Host)?;
            for line in text.lines() {
                let Some((object, owner)) = line.split_once('\t') else { continue };
                if is_gone(owner)
                    && let Err(reason) = ask(&[remove, &[object][..]].concat())
                {
                    eprintln!("a lab whose launcher is gone left {object}, which stays: {reason}");
                }
            }
        }
        Ok(())
    }

    /// Makes the network and the containers of a lab, none of them started; nothing if its network is
    /// another's.
    ///
    /// # Errors
    /// If they cannot be made.
    pub fn create(&self, id: &str, file: &Path) -> Result<Option<Project<'_>>, LaunchError> {
        let name = format!("pausebed-{id}");
        let mut project = Project { docker: self, name, file: file.to_owned(), is_up: true };
        match project.compose(&["up", "--no-start"]) {
            Ok(_) => Ok(Some(project)),
            Err(reason) => {
                project.down()?;
                if reason.contains("overlaps") { Ok(None) } else { Err(failed(&reason)) }
            }
        }
    }
}

impl Project<'_> {
    fn compose(&self, words: &[&str]) -> Result<String, String> {
        let file = self.file.to_string_lossy();
        let common = ["--project-name", &self.name, "--file", &file];
        ask(&[self.docker.compose, &common[..], words].concat())
    }

    /// Starts the containers.
    ///
    /// # Errors
    /// If one does not start.
    pub fn start(&self) -> Result<(), LaunchError> {
        self.compose(&["start"]).map(|_| ()).map_err(|reason| failed(&reason))
    }

    /// What the containers said last, as an appendix to an error.
    pub fn last_words(&self) -> String {
        match self.compose(&["logs", "--no-color", "--tail", "5"]) {
            Ok(text) if !text.trim().is_empty() => format!("\n{}", text.trim_end()),
            _ => String::new(),
        }
    }

    /// Removes containers and network.
    ///
    /// # Errors
    /// If something stays.
    pub fn down(&mut self) -> Result<(), LaunchError> {
        self.is_up = false;
        self.compose(&["down", "--volumes", "--timeout", "0"])
            .map(|_| ())
            .map_err(|reason| LaunchError::Host(format!("lab {} stays: {reason}", self.name)))
    }
}

impl Drop for Project<'_> {
    fn drop(&mut self) {
        if self.is_up {
            // For a launcher that panics; an ordinary end has been through `down` already.
            let _ = self.down();
        }
    }
}
