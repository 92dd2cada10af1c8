//! Child processes: daemons that live exactly as long as their launcher wants them to.

use emulation::daemon::protocol::{ToDaemon, ToLauncher, read_line, write_line};
use emulation::wiring::NodeKind;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::UnboundedSender;

/// What a daemon's pipe brought.
#[derive(Debug)]
pub enum News {
    /// A message.
    Message(Box<ToLauncher>),
    /// A line that is none.
    Nonsense(String),
    /// The pipe has ended.
    Ended,
}

/// One daemon process.
#[derive(Debug)]
pub struct Daemon {
    /// Its name in messages ("nicd 0").
    pub name: String,
    child: Child,
    commands: Option<ChildStdin>,
}

/// The program for `kind` with its first argument: beside this one if it is there, else this one
/// playing its part.
pub(super) fn program(kind: NodeKind) -> io::Result<(PathBuf, Option<&'static str>)> {
    let name = match kind {
        NodeKind::Switch => "switchd",
        NodeKind::Nic => "nicd",
    };
    let own = std::env::current_exe()?;
    let beside = own.with_file_name(name);
    Ok(if beside.is_file() { (beside, None) } else { (own, Some(name)) })
}

impl Daemon {
    /// Starts a daemon with a configuration file and further variables of its environment; its
    /// messages go to `news` under `process`.
    ///
    /// Must be called on the main thread: the kernel ends the child when the thread that started
    /// it ends.
    ///
    /// # Errors
    /// If the program cannot be started.
    #[expect(clippy::disallowed_methods, reason = "this is the room for child processes")]
    pub fn start(
        kind: NodeKind,
        process: usize,
        config: &Path,
        environment: &[(String, String)],
        news: UnboundedSender<(usize, News)>,
    ) -> io::Result<Daemon> {
        let (program, part) = program(kind)?;
        let mut command = Command::new(&program);
        command.args(part).arg("--config").arg(config);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let commands = child.stdin.take();
        let output = child.stdout.take().expect("standard output was asked for");
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = match read_line::<ToLauncher>(&line) {
                    Ok(message) => News::Message(Box::new(message)),
                    Err(reason) => News::Nonsense(reason),
                };
                // A launcher that no longer listens is ending its daemons.
                let _ = news.send((process, message));
            }
            let _ = news.send((process, News::Ended));
        });
        let part = if kind == NodeKind::Nic { "nicd" } else { "switchd" };
        Ok(Daemon { name: format!("{part} (process {process})"), child, commands })
    }

    /// Tells the daemon something.
    ///
    /// # Errors
    /// If it is gone.
    pub async fn tell(&mut self, message: &ToDaemon) -> io::Result<()> {
        let mut line = Vec::new();
        write_line(&mut line, message)?;
        let commands = self.commands.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        commands.write_all(&line).await?;
        commands.flush().await
    }

    /// Ends the daemon whatever it is doing, and waits until it is gone.
    pub async fn end(&mut self) {
        drop(self.commands.take());
        // An error means that it has ended already.
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
    }

    /// Waits for the daemon's own end; how it ended, in words.
    pub async fn wait(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}
