//! Broadcasts that show whether a switch works, and how fast.

use super::Switch;
use crate::file::DutFile;
use crate::line::Line;
use crate::verdict::Check;
use proto::frame::Frame;
use proto::units::{Duration, Instant};
use proto::wire::ethernet::MacAddress;
use testbed::Seen;

/// The number of the first station that only these broadcasts use.
const STATION: u16 = 0xfe00;
/// Octets that distinguish a broadcast from others: addresses, EtherType and number.
const HEAD: usize = 18;

fn is(frame: &Frame, seen: &Seen) -> bool {
    seen.frame.octets.get(..HEAD) == frame.octets.get(..HEAD)
}

/// How long a broadcast by port 1 takes to the first port by which it comes out; none if by none within `patience`. One
/// port is enough, since a fault may have left others paused.
///
/// # Errors
/// Those of the line.
pub fn echo(file: &DutFile, line: &mut Line, patience: Duration) -> Check<Option<Duration>> {
    Switch::new(file, line, 0).passes(1, patience)
}

/// Waits at most `limit` until broadcasts of each port come out by all others. Returns the pairs of ports between which
/// none has passed.
///
/// # Errors
/// Those of the line.
pub fn ready(file: &DutFile, line: &mut Line, limit: Duration) -> Check<Vec<(u8, u8)>> {
    let until = line.now() + limit;
    let mut missing: Vec<(u8, u8)> = Vec::new();
    for port in 1..=line.ports() {
        let mut left = Switch::new(file, line, 0).others(port);
        while !left.is_empty() {
            let mut switch = Switch::new(file, line, 0);
            let step = switch.line.now() + switch.quiet() * 5;
            let came = switch.broadcast(port, left.len(), step)?;
            let group = file.queue.lag_port.map(|first| [first, first + 1]).unwrap_or_default();
            // A group of links is one port.
            let is_done = |other: &u8| {
                let is_same =
                    |known: u8| known == *other || group.contains(&known) && group.contains(other);
                is_same(port) || came.iter().any(|(known, _)| is_same(*known))
            };
            left.retain(|other| !is_done(other));
            if switch.line.now() >= until {
                break;
            }
        }
        missing.extend(left.into_iter().map(|other| (port, other)));
    }
    Ok(missing)
}

impl Switch<'_> {
    /// Sends a broadcast by `port`. Returns how long it takes to the first other port; none after `patience`.
    ///
    /// # Errors
    /// Those of the line.
    pub fn passes(&mut self, port: u8, patience: Duration) -> Check<Option<Duration>> {
        let began = self.line.now();
        let came = self.broadcast(port, 1, began + patience)?;
        let took = came.first().map(|(_, at)| at.since(began));
        if let Some(took) = took {
            self.line.pace.answered(took);
        }
        Ok(took)
    }

    /// Sends a broadcast by `port` and waits until it has come out by `count` ports, at most until `until`.
    fn broadcast(&mut self, port: u8, count: usize, until: Instant) -> Check<Vec<(u8, Instant)>> {
        let from = self.line.seen.len();
        let number = (self.line.now().as_ps() / 1_000_000) as u32;
        let station = self.station(STATION + u16::from(port));
        let frame = self.frame(MacAddress::BROADCAST, station, 64, number);
        self.line.send(port, &frame.octets)?;
        let came = |seen: &[Seen]| -> Vec<(u8, Instant)> {
            let own = seen[from..].iter().filter(|seen| seen.port != port && is(&frame, seen));
            own.map(|seen| (seen.port, seen.at)).collect()
        };
        self.line.wait(until, |seen| came(seen).len() >= count)?;
        Ok(came(&self.line.seen))
    }
}
