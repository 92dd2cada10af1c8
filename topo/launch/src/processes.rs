//! Daemon processes of a run: child processes, and daemons that joined by TCP.

use daemon::protocol::{ToDaemon, ToLauncher, read_line, write_line};
use daemon::with_sources;
use emulation::wiring::NodeKind;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;

/// An event on the pipe of a daemon.
#[derive(Debug)]
pub(crate) enum DaemonEvent {
    /// A message.
    Message(ToLauncher),
    /// A line that is not a message.
    Malformed(String),
    /// The pipe has ended.
    Ended,
}

/// One daemon process.
pub(crate) struct Daemon {
    /// Its name in messages ("nicd 0").
    pub name: String,
    /// By how many nanoseconds its monotonic clock is ahead of this one: 0 on the same machine.
    pub clock_ahead_ns: i64,
    /// None for a daemon that joined: the end of the connection ends it.
    child: Option<Child>,
    commands: Option<Box<dyn AsyncWrite + Send + Unpin>>,
}

/// This program, even if its file has been replaced since. All processes of a run are of one build, which
/// `run.json` names.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The command of this program that hosts devices of `kind`.
pub(crate) const fn role(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Switch => "switchd",
        NodeKind::Nic => "nicd",
    }
}

/// Sends a message as a line.
///
/// # Errors
/// If the reader is gone.
pub(crate) async fn send_line(
    mut to: impl AsyncWrite + Unpin,
    message: &impl Serialize,
) -> io::Result<()> {
    let mut line = Vec::new();
    write_line(&mut line, message)?;
    to.write_all(&line).await?;
    to.flush().await
}

impl Daemon {
    /// Starts a daemon with a configuration file and additional environment variables. Its messages go to
    /// `events` with the number `process`.
    ///
    /// Must be called on the main thread: the kernel ends the child with the thread that started it.
    ///
    /// # Errors
    /// If the program cannot be started.
    #[expect(clippy::disallowed_methods, reason = "only this crate starts child processes")]
    pub fn start(
        kind: NodeKind,
        process: usize,
        config: &Path,
        environment: &[(String, String)],
        events: UnboundedSender<(usize, DaemonEvent)>,
    ) -> io::Result<Daemon> {
        let mut command = Command::new(OWN_PROGRAM);
        command.arg0("pausebed").arg(role(kind)).arg("--config").arg(config);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let commands = child.stdin.take().expect("standard input was asked for");
        let output = child.stdout.take().expect("standard output was asked for");
        Ok(Daemon {
            child: Some(child),
            ..Daemon::over(kind, process, commands, BufReader::new(output), events)
        })
    }

    /// A daemon that runs already, with the two directions of the connection to it.
    pub fn over(
        kind: NodeKind,
        process: usize,
        commands: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncBufRead + Send + Unpin + 'static,
        events: UnboundedSender<(usize, DaemonEvent)>,
    ) -> Daemon {
        tokio::spawn(async move {
            let mut lines = output.lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = match read_line::<ToLauncher>(&line) {
                    Ok(message) => DaemonEvent::Message(message),
                    Err(error) => DaemonEvent::Malformed(with_sources(&error)),
                };
                // The receiver is gone when the launcher ends its daemons.
                let _ = events.send((process, message));
            }
            let _ = events.send((process, DaemonEvent::Ended));
        });
        let name = format!("{} (process {process})", role(kind));
        Daemon { name, clock_ahead_ns: 0, child: None, commands: Some(Box::new(commands)) }
    }

    /// Sends a message to the daemon.
    ///
    /// # Errors
    /// If the daemon is gone.
    pub async fn send(&mut self, message: &ToDaemon) -> io::Result<()> {
        send_line(self.commands.as_mut().ok_or(io::ErrorKind::BrokenPipe)?, message).await
    }

    /// Kills the daemon and waits until it is gone.
    pub async fn end(&mut self) {
        drop(self.commands.take());
        if let Some(child) = &mut self.child {
            // An error means that it has ended already.
            let _ = child.start_kill();
            let _ = child.wait().await;
        }
    }

    /// Waits for the end of the daemon and returns its exit status as text.
    pub async fn wait(&mut self) -> String {
        let Some(child) = &mut self.child else {
            return "the connection is closed".to_owned();
        };
        let ended = child.wait().await;
        ended.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}
