//! The agent of a NIC, called from a thread of its own: while it works, the tester answers ARP and reads frames.

use super::verdict::{Check, Fault};
use emulation::clock::monotonic_ns;
use launch::lab::{LabRecord, client};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;
use verbs::client::{Client, ClientError, OverStream, Transport};
use verbs::line::NumberedAnswer;

/// The time for an answer: the longest wait of a call, on a busy host.
const ANSWER: Duration = Duration::from_secs(12);

/// A client of any agent.
pub type AnyClient = Client<Box<dyn Transport + Send>>;

type Job = Box<dyn FnOnce(&mut AnyClient) + Send>;

/// An agent.
#[derive(Debug)]
pub struct Agent {
    jobs: Sender<Job>,
    /// What answered the greeting, and the devices it has.
    pub name: String,
}

impl Agent {
    /// The agent at a Unix stream socket.
    ///
    /// # Errors
    /// If nothing answers there.
    pub fn at(socket: &Path) -> Result<Agent, String> {
        let failed = |error: io::Error| format!("the agent at {}: {error}", socket.display());
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(failed)?;
        let line = OverStream::new(stream).map_err(failed)?;
        Agent::over(Box::new(line))
    }

    /// The agent of a node of a lab.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn of_node(record: LabRecord, node: &str) -> Result<Agent, String> {
        Agent::over(Box::new(OfNode { record, node: node.to_owned() }))
    }

    fn over(transport: Box<dyn Transport + Send>) -> Result<Agent, String> {
        let greeted = Client::greet(transport, monotonic_ns());
        let (mut client, agent, devices) = greeted.map_err(|error| error.to_string())?;
        let (jobs, work) = channel::<Job>();
        let thread = std::thread::Builder::new().name("agent".to_owned());
        let thread = thread.spawn(move || {
            for job in work {
                job(&mut client);
            }
        });
        thread.map_err(|error| format!("no thread: {error}"))?;
        Ok(Agent { jobs, name: format!("{agent} with {}", devices.join(", ")) })
    }

    /// Executes `work`, and returns what it finds; meanwhile `turn` is called again and again.
    ///
    /// # Errors
    /// Those of `turn`.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut AnyClient) -> Result<T, ClientError> + Send + 'static,
        mut turn: impl FnMut() -> Check<()>,
    ) -> Check<Result<T, ClientError>> {
        let (answer, answers): (_, Receiver<Result<T, ClientError>>) = channel();
        let job: Job = Box::new(move |client| {
            // The case that asked may have ended.
            let _ = answer.send(work(client));
        });
        let gone = || Fault::fail("the agent's thread has ended");
        self.jobs.send(job).map_err(|_| gone())?;
        loop {
            match answers.try_recv() {
                Ok(found) => return Ok(found),
                Err(TryRecvError::Disconnected) => return Err(gone()),
                Err(TryRecvError::Empty) => turn()?,
            }
        }
    }
}

/// The agent of a node, by the administration of its daemon.
struct OfNode {
    record: LabRecord,
    node: String,
}

impl Transport for OfNode {
    fn exchange(&mut self, _: u64, line: &[u8]) -> io::Result<NumberedAnswer> {
        let lines = [String::from_utf8_lossy(line).trim_end().to_owned()];
        let asked = client::ask_agent(&self.record, &self.node, &lines);
        let answers = asked.map_err(io::Error::other)?;
        Ok(serde_json::from_str(answers.first().ok_or(io::ErrorKind::UnexpectedEof)?)?)
    }
}
