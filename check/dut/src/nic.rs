//! Cases for NICs: the tester is the peer on the wire, frame by frame; the agent makes queue pairs, posts and polls.
//!
//! ```text
//!   case ── Nic ──▶ line: requests, acknowledgements, each as the case wants it ──▶ device
//!            └────▶ agent: create, connect, post, poll ────────────────────────────▶ device
//! ```
//!
//! A case connects a queue pair of its own (`Pair`), so none depends on another. What the tester sends is a
//! [`Packet`]; the case may change any octet of the frame afterwards.

mod congestion;
mod connection;
mod datagrams;
mod encoding;
mod grammar;
mod hostile;
mod impairments;
mod internet;
mod line_rate;
mod memory;
mod neighbour;
mod pair;
mod receive;
mod sequence;
mod timers;

use super::agent::Agent;
use super::file::DutFile;
use super::line::Line;
use super::verdict::{Check, Fault};
use bytes::BytesMut;
use neighbour::Neighbour;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Dscp, Ecn, MacAddress, Psn, QueuePairNumber};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{self, NetworkHeaders, PacketBuilder};
use std::net::Ipv4Addr;
use verbs::client::ClientError;

/// The scripts of a group by the id of their case.
pub type Scripts = &'static [(&'static str, fn(&mut Nic<'_>) -> Check)];

/// The scripts of every group.
pub const SCRIPTS: &[Scripts] = &[
    encoding::SCRIPTS,
    receive::SCRIPTS,
    sequence::SCRIPTS,
    timers::SCRIPTS,
    memory::SCRIPTS,
    datagrams::SCRIPTS,
    grammar::SCRIPTS,
    congestion::SCRIPTS,
    connection::SCRIPTS,
    impairments::SCRIPTS,
    hostile::SCRIPTS,
    internet::SCRIPTS,
    line_rate::SCRIPTS,
];

/// The tester's MAC address.
const OWN_MAC: MacAddress = MacAddress::from_number(0x02f0_0000_0001);
/// The tester's UDP source port.
const SOURCE_PORT: u16 = 0xc123;

/// Quiet times that are waited for a device that answers echoes late.
const LATE_ECHOES: u32 = 5;

/// A packet that the tester sends.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The BTH; the pad count is computed.
    pub bth: Bth,
    /// The headers of its opcode.
    pub extended: ExtendedHeaders,
    /// The payload.
    pub payload: Vec<u8>,
    /// The ECN field.
    pub ecn: Ecn,
}

/// A packet of the device.
#[derive(Clone, Debug)]
pub struct Got {
    /// When it came.
    pub at: Instant,
    /// Its IPv4 header.
    pub ip: Ipv4,
    /// Its UDP header.
    pub udp: Udp,
    /// Its BTH.
    pub bth: Bth,
    /// Its extended headers.
    pub extended: ExtendedHeaders,
    /// Its payload without pad.
    pub payload: Vec<u8>,
    /// The frame.
    pub octets: BytesMut,
}

/// A NIC under test, as a case sees it.
pub struct Nic<'a> {
    /// The DUT file.
    pub file: &'a DutFile,
    line: &'a mut Line,
    agent: &'a Agent,
    mac: MacAddress,
    address: Ipv4Addr,
    case: u16,
    /// Queue pairs made in this case.
    pairs: u32,
    neighbour: Neighbour,
}

impl<'a> Nic<'a> {
    /// For the case with this number of a run. Ends what an earlier case has made.
    ///
    /// # Errors
    /// If the agent does not answer.
    pub fn new(
        file: &'a DutFile,
        line: &'a mut Line,
        agent: &'a Agent,
        case: u16,
    ) -> Check<Nic<'a>> {
        let (mac, address) = station(file)?;
        let neighbour = Neighbour::new((mac, address), file.peer);
        let mut nic = Nic { file, line, agent, mac, address, case, pairs: 0, neighbour };
        nic.agent(|client| client.clear())?;
        Ok(nic)
    }

    /// Executes calls at the agent, while the tester answers ARP.
    ///
    /// # Errors
    /// NOT-IMPLEMENTED if the agent says so, FAIL if it refuses otherwise or is silent; those of [`Agent::ask`].
    pub fn agent<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut super::agent::AnyClient) -> Result<T, ClientError> + Send + 'static,
    ) -> Check<T> {
        let Nic { line, agent, neighbour, .. } = self;
        let asked = line.now();
        let found = agent.ask(work, || {
            let until = line.now() + Duration::from_us(300);
            line.wait(until, |_| false)?;
            neighbour.listen(line)
        })?;
        let is_answered = !matches!(found, Err(ClientError::Silent(_)));
        line.pace.called(line.now().since(asked), is_answered);
        found.map_err(|error| match error {
            ClientError::Refused(refusal) if refusal.name == "unsupported" => {
                Fault::absent(format!("the agent refuses: {refusal}"))
            }
            ClientError::Silent(source) => {
                Fault::fail(format!("the agent does not answer: {source}"))
            }
            other => Fault::fail(format!("the agent: {other}")),
        })
    }

    /// Reads for so long, or until `enough` holds of the packets of the device. Meanwhile the tester is a neighbour.
    fn wait(
        &mut self,
        time: Duration,
        mut enough: impl FnMut(&[Got]) -> bool,
        from: usize,
    ) -> Check<Vec<Got>> {
        let until = self.line.now() + time;
        loop {
            let step = (self.line.now() + Duration::from_us(1_000)).min(until);
            let before = self.line.seen.len();
            self.line.wait(step, |seen| seen.len() > before)?;
            self.neighbour.turn(self.line)?;
            let got = self.got(from);
            if enough(&got) || self.line.now() >= until {
                return Ok(got);
            }
        }
    }

    /// The packets of RoCE that have come since the frame with this number.
    fn got(&self, from: usize) -> Vec<Got> {
        self.line.seen[from..].iter().filter_map(|seen| parse(&seen.frame, seen.at)).collect()
    }

    /// The number of the next frame of the device.
    pub fn mark(&self) -> usize {
        self.line.seen.len()
    }

    /// Waits until `count` packets have come since `mark`, and then for the quiet time, in which no more should come.
    ///
    /// # Errors
    /// Those of the line.
    pub fn packets(&mut self, mark: usize, count: usize) -> Check<Vec<Got>> {
        if count > 0 {
            self.wait(self.file.tolerance.patience, |got| got.len() >= count, mark)?;
        }
        // While the device answers echoes late, it may have more to say.
        for _ in 0..LATE_ECHOES {
            self.wait(self.file.tolerance.quiet, |_| false, mark)?;
            let echo = self.neighbour.echo(self.line, self.file.tolerance.patience)?;
            if echo.is_none_or(|took| took <= self.file.tolerance.quiet) {
                break;
            }
        }
        Ok(self.got(mark))
    }

    /// Waits until `count` packets have come since `mark`, and no longer.
    ///
    /// # Errors
    /// Those of the line.
    pub fn first(&mut self, mark: usize, count: usize) -> Check<Vec<Got>> {
        self.wait(self.file.tolerance.patience, |got| got.len() >= count, mark)
    }

    /// Everything that comes in so long.
    ///
    /// # Errors
    /// Those of the line.
    pub fn during(&mut self, mark: usize, time: Duration) -> Check<Vec<Got>> {
        self.wait(time, |_| false, mark)
    }

    /// The frame of `packet`.
    pub fn frame(&self, packet: &Packet) -> Frame {
        let ip = Ipv4 {
            dscp: Dscp::default(),
            ecn: packet.ecn,
            source: self.file.peer,
            destination: self.address,
            ..Ipv4::default()
        };
        let builder = PacketBuilder {
            destination: self.mac,
            source: OWN_MAC,
            tag: None,
            network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(SOURCE_PORT)),
            bth: packet.bth,
            extended: packet.extended,
        };
        let mut octets = BytesMut::new();
        let payload = &packet.payload;
        let emitted =
            builder.emit(&mut octets, payload.len(), |place| place.copy_from_slice(payload));
        emitted.expect("a case asks for packets that there are");
        Frame::unchecked(FrameKind::Ethernet, octets)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// Those of the line.
    pub fn send(&mut self, packet: &Packet) -> Check<()> {
        let frame = self.frame(packet);
        self.line.send(1, &frame.octets)
    }

    /// Sends a frame as it is.
    ///
    /// # Errors
    /// Those of the line.
    pub fn send_octets(&mut self, octets: &[u8]) -> Check<()> {
        self.line.send(1, octets)
    }
}

fn station(file: &DutFile) -> Check<(MacAddress, Ipv4Addr)> {
    file.station.ok_or_else(|| Fault::unclear("the DUT file has no addresses"))
}

/// Asks the device for its address. Returns how long its answer takes; none if none comes within `patience`.
///
/// # Errors
/// Those of the line.
pub fn echo(file: &DutFile, line: &mut Line, patience: Duration) -> Check<Option<Duration>> {
    Neighbour::new(station(file)?, file.peer).echo(line, patience)
}

/// A packet to a queue pair, for the default partition.
pub fn packet(to: QueuePairNumber, opcode: Opcode, psn: Psn) -> Packet {
    let bth = Bth { migration_request: true, ..Bth::new(opcode, to, psn) };
    Packet { bth, extended: ExtendedHeaders::NONE, payload: Vec::new(), ecn: Ecn::Capable0 }
}

fn parse(frame: &Frame, at: Instant) -> Option<Got> {
    let packet = roce::Packet::parse(&frame.octets).ok().flatten()?;
    let NetworkHeaders::Ipv4(ip, _, udp) = packet.network else { return None };
    Some(Got {
        at,
        ip,
        udp,
        bth: packet.transport.bth,
        extended: packet.transport.extended,
        payload: packet.transport.payload.to_vec(),
        octets: frame.octets.clone(),
    })
}
