//! Docker or Podman through its command line.

use crate::HostError;
use crate::process::{spawn, tie};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Programs of engines with the same arguments, in the order in which they are tried.
const PROGRAMS: [&str; 2] = ["docker", "podman"];
const HINT: &str = "install docker.io or podman, start the engine, and get access to it (group docker, or DOCKER_HOST)";

/// An engine that answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Engine {
    program: &'static str,
}

impl Engine {
    /// The first engine that answers.
    pub fn find() -> Result<Engine, HostError> {
        let mut engines = PROGRAMS.map(|program| Engine { program }).into_iter();
        let answers = |engine: &Engine| engine.output(&["version"]).is_ok();
        let missing =
            || HostError::Missing { program: "a container engine that answers", hint: HINT };
        engines.find(answers).ok_or_else(missing)
    }

    /// The name of its program.
    pub fn program(self) -> &'static str {
        self.program
    }

    /// A command of the engine. It is in a process group of its own, since Ctrl-C is for this program.
    #[expect(clippy::disallowed_methods, reason = "only this file starts container engines")]
    pub fn command(self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(self.program);
        command.args(words).process_group(0);
        command
    }

    fn output(self, words: &[&str]) -> Result<String, HostError> {
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        tie(&mut command);
        let output = spawn(command).and_then(std::process::Child::wait_with_output);
        let Output { status, stdout, stderr } = output.map_err(HostError::io(self.program))?;
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
        match status.success() {
            true => Ok(text(&stdout)),
            false => Err(HostError::Failed(format!("{}: {}", self.program, text(&stderr)))),
        }
    }

    /// Makes sure that an image is there.
    pub fn require_image(self, image: &str) -> Result<(), HostError> {
        let found = self.output(&["image", "inspect", "--format", "{{.Id}}", "--", image]);
        found.map(drop).map_err(|error| {
            let program = self.program;
            let text = format!("{error}\n    hint: get the image with {program} pull {image}");
            HostError::Failed(text)
        })
    }

    /// Process id of the first process of a container; none before it has started.
    pub fn pid_of(self, id: &str) -> Option<u32> {
        let text = self.output(&["inspect", "--format", "{{.State.Pid}}", id]).ok()?;
        text.parse().ok().filter(|pid| *pid > 0)
    }

    /// Removes a container, which may have ended.
    pub fn remove(self, id: &str) {
        // The engine removes it as well when its first process ends.
        let _ = self.output(&["rm", "--force", id]);
    }

    /// The containers with this label, and the values of it.
    pub fn labelled(self, label: &str) -> Result<Vec<(String, String)>, HostError> {
        let format = format!("{{{{.ID}}}}\t{{{{.Label \"{label}\"}}}}");
        let filter = format!("label={label}");
        let words = ["ps", "--all", "--no-trunc", "--filter", &filter, "--format", &format];
        let pairs = self.output(&words)?;
        let pairs = pairs.lines().filter_map(|line| line.split_once('\t'));
        Ok(pairs.map(|(id, owner)| (id.to_owned(), owner.to_owned())).collect())
    }
}
