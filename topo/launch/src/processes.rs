//! Daemons that live exactly as long as their launcher wants them to: child processes, and those that
//! joined it.

use daemon::protocol::{ToDaemon, ToLauncher, read_line, write_line};
use daemon::with_sources;
use emulation::wiring::NodeKind;
use std::io;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
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
pub struct Daemon {
    /// Its name in messages ("nicd 0").
    pub name: String,
    /// How far its monotonic clock is ahead of ours, in nanoseconds: 0 on this machine.
    pub clock_ahead_ns: i64,
    /// None of one that joined: the end of the connection ends it.
    child: Option<Child>,
    commands: Option<Box<dyn AsyncWrite + Send + Unpin>>,
}

/// This very program, even if its file has been replaced since. Daemons are never another one found beside it: so a run
/// is of one build, the one that `run.json` names.
const OWN: &str = "/proc/self/exe";

/// The part that this program plays for devices of `kind`.
const fn part(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Switch => "switchd",
        NodeKind::Nic => "nicd",
    }
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
        let mut command = Command::new(OWN);
        command.arg0("pausebed").arg(part(kind)).arg("--config").arg(config);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let commands = child.stdin.take().expect("standard input was asked for");
        let output = child.stdout.take().expect("standard output was asked for");
        Ok(Daemon {
            child: Some(child),
            ..Daemon::over(kind, process, commands, BufReader::new(output), news)
        })
    }

    /// A daemon that runs already and is spoken to by `commands` and `output`.
    pub fn over(
        kind: NodeKind,
        process: usize,
        commands: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncBufRead + Send + Unpin + 'static,
        news: UnboundedSender<(usize, News)>,
    ) -> Daemon {
        tokio::spawn(async move {
            let mut lines = output.lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = match read_line::<ToLauncher>(&line) {
                    Ok(message) => News::Message(Box::new(message)),
                    Err(error) => News::Nonsense(with_sources(&error)),
                };
                // A launcher that no longer listens is ending its daemons.
                let _ = news.send((process, message));
            }
            let _ = news.send((process, News::Ended));
        });
        let name = format!("{} (process {process})", part(kind));
        Daemon { name, clock_ahead_ns: 0, child: None, commands: Some(Box::new(commands)) }
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
        if let Some(child) = &mut self.child {
            // An error means that it has ended already.
            let _ = child.start_kill();
            let _ = child.wait().await;
        }
    }

    /// Waits for the daemon's own end; how it ended, in words.
    pub async fn wait(&mut self) -> String {
        let Some(child) = &mut self.child else {
            return "the connection to it is gone".to_owned();
        };
        match child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}
