//! Labs as other programs see them: browsers, Prometheus and its board, Wireshark.

#![expect(clippy::disallowed_methods, reason = "these tests start programs")]

#[path = "seeing/board.rs"]
mod board;
#[path = "seeing/extcap.rs"]
mod extcap;
#[path = "live/hostile.rs"]
#[allow(dead_code, reason = "laboratory.rs asks it for the ports of daemons")]
mod hostile;
#[path = "live/laboratory.rs"]
#[allow(dead_code, reason = "the tests of live.rs use more of it")]
mod laboratory;
#[path = "seeing/served.rs"]
mod served;

use laboratory::{in_repository, pausebed};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The two networks of these tests.
const INFINIBAND: &str = "tests/tests/live/scenario.toml";
const ETHERNET: &str = "tests/tests/live/ethernet.toml";

/// A lab that is up, until it is dropped.
struct Lab {
    folder: TempDir,
    name: &'static str,
}

impl Lab {
    fn up(file: &str, name: &'static str) -> Lab {
        let folder = tempfile::Builder::new().prefix("pb").tempdir().expect("a folder");
        let lab = Lab { folder, name };
        let file = in_repository(file).display().to_string();
        lab.good(&["up", &file, "--name", name, "--backend", "udp"]);
        lab
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn labs(&self) -> PathBuf {
        self.path().join("labs")
    }

    /// A program that finds this lab and no other.
    fn program(&self, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).env("PAUSEBED_LABS", self.labs()).env("TMPDIR", self.path());
        command.env("XDG_RUNTIME_DIR", self.path()).stdin(Stdio::null());
        command
    }

    fn command(&self, words: &[&str]) -> Command {
        self.program(pausebed(), words)
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }

    /// What the program prints, having ended well.
    fn good(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // One that a test has taken down already is no more.
        let _ = self.command(&["down", "--all"]).output();
    }
}

/// A program that may be missing: its output, or none with a word about it.
fn if_there(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            let name = command.get_program().to_string_lossy().into_owned();
            println!("SKIPPED: {name} is not installed ({error}): nothing is shown with it");
            None
        }
    }
}
