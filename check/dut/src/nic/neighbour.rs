//! The tester as a neighbour of the device: it answers ARP, and asks, which shows how fast the device answers.

use super::OWN_MAC;
use crate::line::Line;
use crate::verdict::Check;
use proto::ids::MacAddress;
use proto::units::{Duration, Instant};
use proto::wire::ethernet::ethertype;
use proto::wire::internet::{Arp, ArpOperation};
use std::net::Ipv4Addr;
use testbed::frames::ethernet::arp;

/// The interval of questions while the tester waits.
const INTERVAL: Duration = Duration::from_us(10_000);

/// The tester's side of ARP.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// The device.
    device: (MacAddress, Ipv4Addr),
    own: Ipv4Addr,
    /// Frames before this one have been looked at.
    looked: usize,
    /// The question that has no answer yet, by the time at which it was sent.
    asked: Option<Instant>,
    /// When the next question is due.
    next: Instant,
}

impl Neighbour {
    pub fn new(device: (MacAddress, Ipv4Addr), own: Ipv4Addr) -> Neighbour {
        Neighbour { device, own, looked: 0, asked: None, next: Instant::ZERO }
    }

    /// Answers questions for the tester's address, and notes the device's answers.
    pub fn listen(&mut self, line: &mut Line) -> Check<()> {
        while self.looked < line.seen.len() {
            let seen = &line.seen[self.looked];
            self.looked += 1;
            let (octets, at) = (&seen.frame.octets, seen.at);
            if octets.get(12..14) != Some(&ethertype::ARP.to_be_bytes()[..]) {
                continue;
            }
            let Ok(arp) = Arp::parse(&octets[14..]) else { continue };
            let sender = (arp.sender_hardware, arp.sender_protocol);
            match arp.operation {
                ArpOperation::Request if arp.target_protocol == self.own => {
                    self.send(line, ArpOperation::Reply, sender)?;
                }
                ArpOperation::Reply if sender.1 == self.device.1 => {
                    if let Some(asked) = self.asked.take() {
                        line.pace.answered(at.since(asked));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The same, and asks when a question is due.
    pub fn turn(&mut self, line: &mut Line) -> Check<()> {
        self.listen(line)?;
        if self.asked.is_none() && line.now() >= self.next {
            self.ask(line)?;
        }
        Ok(())
    }

    fn ask(&mut self, line: &mut Line) -> Check<()> {
        let now = line.now();
        (self.asked, self.next) = (Some(now), now + INTERVAL);
        self.send(line, ArpOperation::Request, self.device)
    }

    /// Asks and waits for the answer. Returns how long it took; none if it does not come within `patience`.
    pub fn echo(&mut self, line: &mut Line, patience: Duration) -> Check<Option<Duration>> {
        // An answer to an earlier question would be taken for this one's.
        self.await_answer(line, patience)?;
        self.ask(line)?;
        let began = line.now();
        Ok(self.await_answer(line, patience)?.then(|| line.now().since(began)))
    }

    fn await_answer(&mut self, line: &mut Line, patience: Duration) -> Check<bool> {
        let until = line.now() + patience;
        self.listen(line)?;
        while self.asked.is_some() && line.now() < until {
            let looked = self.looked;
            line.wait(until, |seen| seen.len() > looked)?;
            self.listen(line)?;
        }
        Ok(self.asked.take().is_none())
    }

    fn send(
        &self,
        line: &mut Line,
        operation: ArpOperation,
        to: (MacAddress, Ipv4Addr),
    ) -> Check<()> {
        line.send(1, &arp(operation, (OWN_MAC, self.own), to).octets)
    }
}
