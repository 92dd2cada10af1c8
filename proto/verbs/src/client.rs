//! The test's side of an agent: calls with typed results.

use crate::answer::{Answer, Port, Refusal};
use crate::attributes::{Access, AddressVector, Handle, QpAttributes, Service};
use crate::call::Call;
use crate::line::{Lines, NumberedAnswer, NumberedCall, Outcome, line};
use crate::pattern::{Difference, Pattern};
use crate::runs::Run;
use crate::work::{Places, ReceiveWork, SendWork};
use crate::{ANSWER_LIMIT, VERSION};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The agent refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The agent has ended, or its time is over.
    #[error("the agent does not answer")]
    Silent(#[source] io::Error),
    /// The agent answers something else.
    #[error("the agent's answer is none to this call: {0}")]
    Unexpected(String),
}

/// How calls reach an agent.
pub trait Transport {
    /// Carries a line with its end to the agent, and returns the answer with number `id`.
    ///
    /// # Errors
    /// If there is none.
    fn exchange(&mut self, id: u64, line: &[u8]) -> io::Result<NumberedAnswer>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn exchange(&mut self, id: u64, line: &[u8]) -> io::Result<NumberedAnswer> {
        (**self).exchange(id, line)
    }
}

/// A stream of octets to an agent. Answers to earlier clients are skipped.
#[derive(Debug)]
pub struct OverStream<S> {
    stream: S,
    lines: Lines,
}

impl<S: Read + Write> OverStream<S> {
    /// Lines over `stream`, whose read timeout limits the wait for an answer.
    ///
    /// # Errors
    /// If nothing can be written.
    pub fn new(mut stream: S) -> io::Result<OverStream<S>> {
        // Ends what an earlier client may have sent half of.
        stream.write_all(b"\n")?;
        Ok(OverStream { stream, lines: Lines::new(ANSWER_LIMIT) })
    }
}

impl<S: Read + Write> Transport for OverStream<S> {
    fn exchange(&mut self, id: u64, line: &[u8]) -> io::Result<NumberedAnswer> {
        self.stream.write_all(line)?;
        let mut buffer = [0; 16 * 1024];
        loop {
            while let Some(answer) = self.lines.next_message::<NumberedAnswer>() {
                if answer.id == id {
                    return Ok(answer);
                }
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.lines.push(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A client.
#[derive(Debug)]
pub struct Client<T> {
    transport: T,
    next: u64,
}

type Result<T> = std::result::Result<T, ClientError>;

/// Takes a part of one kind of answer.
macro_rules! expect {
    ($answer:expr, $pattern:pat => $value:expr) => {
        match $answer {
            $pattern => Ok($value),
            other => Err(ClientError::Unexpected(format!("{other:?}"))),
        }
    };
}

impl<T: Transport> Client<T> {
    /// A client that begins with the greeting. `first` numbers its first call; a random number tells its answers from
    /// those to earlier clients.
    ///
    /// # Errors
    /// If there is no agent, or one of another version.
    pub fn greet(transport: T, first: u64) -> Result<(Client<T>, String, Vec<String>)> {
        let mut client = Client { transport, next: first.max(1) };
        let found = expect!(client.call(Call::Hello)?, Answer::Hello { version, agent, devices } => (version, agent, devices))?;
        let (version, agent, devices) = found;
        if version != VERSION {
            let text = format!("the agent speaks version {version}, this client {VERSION}");
            return Err(Refusal::new("version", text).into());
        }
        Ok((client, agent, devices))
    }

    /// Executes a call.
    ///
    /// # Errors
    /// If the agent refuses it or does not answer.
    pub fn call(&mut self, call: Call) -> Result<Answer> {
        let id = self.next;
        self.next = self.next.wrapping_add(1).max(1);
        let text = line(&NumberedCall { id, call });
        match self.transport.exchange(id, &text).map_err(ClientError::Silent)?.outcome {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::Refused(refusal) => Err(refusal.into()),
        }
    }

    fn object(&mut self, call: Call) -> Result<Handle> {
        expect!(self.call(call)?, Answer::Object { handle } => handle)
    }

    fn done(&mut self, call: Call) -> Result<()> {
        expect!(self.call(call)?, Answer::Done => ())
    }
}

/// The calls. Each fails if the agent refuses it or does not answer.
impl<T: Transport> Client<T> {
    /// [`Call::Clear`]
    pub fn clear(&mut self) -> Result<()> {
        self.done(Call::Clear)
    }

    /// [`Call::OpenDevice`]
    pub fn open_device(&mut self, name: Option<&str>) -> Result<Handle> {
        self.object(Call::OpenDevice { name: name.map(str::to_owned) })
    }

    /// [`Call::QueryPort`]
    pub fn query_port(&mut self, device: Handle) -> Result<Port> {
        expect!(self.call(Call::QueryPort { device })?, Answer::Port(port) => port)
    }

    /// [`Call::QueryGid`]
    pub fn query_gid(&mut self, device: Handle, index: u8) -> Result<(std::net::Ipv6Addr, String)> {
        expect!(self.call(Call::QueryGid { device, index })?, Answer::Gid { gid, kind } => (gid, kind))
    }

    /// [`Call::Counters`]
    pub fn counters(&mut self, device: Handle) -> Result<BTreeMap<String, u64>> {
        expect!(self.call(Call::Counters { device })?, Answer::Counters(counters) => counters)
    }

    /// [`Call::AllocPd`]
    pub fn alloc_pd(&mut self, device: Handle) -> Result<Handle> {
        self.object(Call::AllocPd { device })
    }

    /// [`Call::RegisterMemory`]; the handle, the address and the R_Key.
    pub fn register_memory(&mut self, pd: Handle, length: u64, access: Access) -> Result<Memory> {
        let answer = self.call(Call::RegisterMemory { pd, length, access })?;
        expect!(answer, Answer::Memory { handle, address, rkey } => Memory { handle, address, rkey })
    }

    /// [`Call::CreateCq`]
    pub fn create_cq(&mut self, device: Handle, entries: u32) -> Result<Handle> {
        self.object(Call::CreateCq { device, entries })
    }

    /// [`Call::CreateQp`] with one completion queue for each direction and equal depths; handle and number.
    pub fn create_qp(
        &mut self,
        pd: Handle,
        service: Service,
        (send_cq, receive_cq): (Handle, Handle),
        depth: u32,
    ) -> Result<(Handle, u32)> {
        let (send_depth, receive_depth) = (depth, depth);
        let call = Call::CreateQp { pd, service, send_cq, receive_cq, send_depth, receive_depth };
        expect!(self.call(call)?, Answer::Qp { handle, number } => (handle, number))
    }

    /// [`Call::ModifyQp`]
    pub fn modify_qp(&mut self, qp: Handle, attributes: QpAttributes) -> Result<()> {
        self.done(Call::ModifyQp { qp, attributes })
    }

    /// [`Call::QueryQp`]
    pub fn query_qp(&mut self, qp: Handle) -> Result<QpAttributes> {
        expect!(self.call(Call::QueryQp { qp })?, Answer::Attributes(attributes) => attributes)
    }

    /// [`Call::CreateAh`]
    pub fn create_ah(&mut self, pd: Handle, address: AddressVector) -> Result<Handle> {
        self.object(Call::CreateAh { pd, address })
    }

    /// [`Call::Destroy`]
    pub fn destroy(&mut self, object: Handle) -> Result<()> {
        self.done(Call::Destroy { object })
    }

    /// [`Call::PostSend`]
    pub fn post_send(&mut self, qp: Handle, work: SendWork, count: u32) -> Result<()> {
        self.done(Call::PostSend { qp, work, count })
    }

    /// [`Call::PostReceive`]
    pub fn post_receive(&mut self, qp: Handle, work: ReceiveWork, count: u32) -> Result<()> {
        self.done(Call::PostReceive { qp, work, count })
    }

    /// [`Call::Poll`]
    pub fn poll(&mut self, cq: Handle, count: u32, wait_ms: u32) -> Result<Vec<Run>> {
        expect!(self.call(Call::Poll { cq, count, wait_ms })?, Answer::Completions(runs) => runs)
    }

    /// [`Call::Fill`]
    pub fn fill(&mut self, places: Places, count: u32, pattern: Pattern) -> Result<()> {
        self.done(Call::Fill { places, count, pattern })
    }

    /// [`Call::Check`]
    pub fn check(
        &mut self,
        places: Places,
        count: u32,
        pattern: Pattern,
    ) -> Result<Option<Difference>> {
        let answer = self.call(Call::Check { places, count, pattern })?;
        expect!(answer, Answer::Checked { difference } => difference)
    }
}

/// A memory region of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its handle.
    pub handle: Handle,
    /// Virtual address for peers.
    pub address: u64,
    /// R_Key.
    pub rkey: u32,
}
