//! Cases for switches: frames in by one port, out by others.
//!
//! Most cases are rows: a frame that goes in, and the ports by which exactly this frame comes out ([`Switch::expect`]).
//! Stations have addresses that no other case uses, so no case depends on what an earlier one has taught the device.

mod flow_control;
mod forwarding;
mod hostile;
mod integrity;
pub mod liveness;
mod load;
mod queueing;
mod reserved;
mod timing;

use super::change::{Changed, Changes};
use super::file::{DutFile, When};
use super::line::Line;
use super::verdict::{Check, Fault};
use bytes::{Bytes, BytesMut};
use proto::frame::{Frame, FrameKind};
use proto::units::{Duration, Instant};
use proto::wire::ethernet::{Envelope, MacAddress};
use testbed::{Script, Seen};

/// The scripts of a group by the id of their case.
pub type Scripts = &'static [(&'static str, fn(&mut Switch<'_>) -> Check)];

/// The scripts of every group.
pub const SCRIPTS: &[Scripts] = &[
    integrity::SCRIPTS,
    forwarding::SCRIPTS,
    reserved::SCRIPTS,
    flow_control::SCRIPTS,
    timing::SCRIPTS,
    queueing::SCRIPTS,
    load::SCRIPTS,
    hostile::SCRIPTS,
];

/// An EtherType for local experiments. Source: IEEE 802, 9.2.4.
const EXPERIMENT: u16 = 0x88b5;
/// The prefix of the stations of the tester: locally administered, outside the numbering plan of our own devices.
const STATIONS: u64 = 0x02f0 << 32;

/// A switch under test, as a case sees it.
pub struct Switch<'a> {
    /// The DUT file.
    pub file: &'a DutFile,
    /// The line to it.
    pub line: &'a mut Line,
    case: u16,
    changes: Option<&'a Changes>,
    /// Frames before this one have been judged.
    mark: usize,
    /// Markers sent.
    markers: u32,
}

impl<'a> Switch<'a> {
    /// For the case with this number of a run.
    pub fn new(file: &'a DutFile, line: &'a mut Line, case: u16) -> Switch<'a> {
        Switch { file, line, case, changes: None, mark: 0, markers: 0 }
    }

    /// Whose settings these hooks change.
    #[must_use]
    pub fn changed_by(self, changes: &'a Changes) -> Switch<'a> {
        Switch { changes: Some(changes), ..self }
    }

    /// Runs the hooks of `when`; they are undone when what is returned is dropped.
    ///
    /// # Errors
    /// If there are none, or one fails.
    pub fn change(&self, when: When) -> Check<Changed> {
        let changes = self.changes.ok_or_else(|| Fault::unclear("no hooks here"))?;
        changes.make(when)
    }

    /// What has come so far is judged; neither it nor what was sent is kept for the capture.
    pub fn forget(&mut self) {
        self.line.forget_frames();
        self.mark = 0;
    }

    /// The station with this number, of this case alone.
    pub fn station(&self, number: u16) -> MacAddress {
        MacAddress::from_number(STATIONS | u64::from(self.case) << 16 | u64::from(number))
    }

    /// Every port but `port`.
    pub fn others(&self, port: u8) -> Vec<u8> {
        (1..=self.line.ports()).filter(|other| *other != port).collect()
    }

    /// Ports by which a broadcast comes out: all but one, and but one of a group of links.
    fn receivers(&self) -> usize {
        usize::from(self.line.ports()) - 1 - usize::from(self.file.queue.lag_port.is_some())
    }

    /// How long the device may take.
    pub fn quiet(&self) -> Duration {
        self.file.tolerance.quiet
    }

    /// A frame between stations that carries `length` octets of payload, which begin with `number`.
    pub fn frame(&self, to: MacAddress, from: MacAddress, length: usize, number: u32) -> Frame {
        let envelope = Envelope::untagged(to, from, EXPERIMENT);
        let header = envelope.octets_len();
        let mut octets = BytesMut::zeroed(header + length);
        envelope.emit(&mut octets);
        for (index, octet) in octets[header..].iter_mut().enumerate() {
            *octet = (index as u8).wrapping_mul(31).wrapping_add(number as u8);
        }
        if length >= 4 {
            octets[header..header + 4].copy_from_slice(&number.to_be_bytes());
        }
        Frame::unchecked(FrameKind::Ethernet, octets)
    }

    /// A short frame.
    pub fn short(&self, to: MacAddress, from: MacAddress) -> Frame {
        self.frame(to, from, 100, 1)
    }

    /// Sends `frame` by `port`, and waits until it has come out by all ports of `out`. It must come out by these, once by each, and with the same octets.
    pub fn expect(&mut self, what: &str, port: u8, frame: &Frame, out: &[u8]) -> Check<()> {
        let came = self.copies(port, frame, out.len())?;
        let mut ports: Vec<u8> = came.iter().map(|(port, _)| *port).collect();
        ports.sort_unstable();
        if ports != out {
            let shown = match ports.len() {
                0..=8 => format!("out by {ports:?}"),
                count => format!("{count} copies come out"),
            };
            return Err(Fault::fail(format!("{what}: in by port {port}, {shown}, not {out:?}")));
        }
        let changed = came.iter().find(|(_, octets)| octets[..] != frame.octets[..]);
        match changed {
            None => Ok(()),
            Some((_, octets)) if is_without_pad(&frame.octets, octets) => {
                Err(Fault::deviation(format!(
                    "{what}: the pad of a short frame is removed ({} of {} octets); hardware adds it again",
                    octets.len(),
                    frame.octets.len()
                )))
            }
            Some((port, octets)) => Err(Fault::fail(format!(
                "{what}: port {port} has changed it: {}",
                difference(&frame.octets, octets)
            ))),
        }
    }

    /// Sends `frame` by `port`; the frames of its source that come out, and their ports. `count` of them are waited for.
    /// A marker behind them shows when no more can come.
    pub fn copies(&mut self, port: u8, frame: &Frame, count: usize) -> Check<Vec<(u8, Bytes)>> {
        self.line.send(port, &frame.octets)?;
        // Without the copies that must come there is nothing to wait for.
        if self.await_copies(frame, count)? {
            self.mark_end(port)?;
        }
        Ok(self.taken(frame))
    }

    /// The same without a marker, which a pause could hold up: what has not come after the quiet time does not come.
    pub fn copies_by_time(
        &mut self,
        port: u8,
        frame: &Frame,
        count: usize,
    ) -> Check<Vec<(u8, Bytes)>> {
        self.line.send(port, &frame.octets)?;
        self.held_copies(frame, count)
    }

    /// Copies of a frame that was sent before.
    pub fn held_copies(&mut self, frame: &Frame, count: usize) -> Check<Vec<(u8, Bytes)>> {
        self.await_copies(frame, count)?;
        let until = self.line.now() + self.quiet();
        self.line.wait(until, |_| false)?;
        Ok(self.taken(frame))
    }

    fn await_copies(&mut self, frame: &Frame, count: usize) -> Check<bool> {
        let mark = self.mark;
        let until = self.line.now() + self.file.tolerance.patience;
        let has = |seen: &[Seen]| {
            seen[mark..].iter().filter(|seen| is_from(frame, seen)).count() >= count
        };
        self.line.wait(until, has)
    }

    /// Sends a broadcast by `port` and waits for it at all other ports. Frames of one port keep their order (IEEE 802.1Q,
    /// 6.5.3), so what was sent before has come out by then, or never will.
    fn mark_end(&mut self, port: u8) -> Check<()> {
        self.markers += 1;
        let station = self.station(0xff00 | u16::from(port));
        let marker = self.frame(MacAddress::BROADCAST, station, 64, self.markers);
        let (mark, others) = (self.mark, self.receivers());
        self.line.send(port, &marker.octets)?;
        let until = self.line.now() + self.file.tolerance.patience;
        // A device may alter its end; addresses, EtherType and number tell it from others.
        let is_marker = |seen: &&Seen| seen.frame.octets.get(..18) == marker.octets.get(..18);
        if !self.line.wait(until, |seen| seen[mark..].iter().filter(is_marker).count() >= others)? {
            return Err(Fault::unclear(
                "a broadcast behind the frame does not come out by all ports",
            ));
        }
        // A copy by the port of arrival has no marker behind it.
        let until = self.line.now() + Duration::from_us(1_000);
        self.line.wait(until, |_| false).map(|_| ())
    }

    /// The frames of the source of `frame` that have come; what has come is judged.
    fn taken(&mut self, frame: &Frame) -> Vec<(u8, Bytes)> {
        let came = self.line.seen[self.mark..].iter().filter(|seen| is_from(frame, seen));
        let came =
            came.map(|seen| (seen.port, Bytes::copy_from_slice(&seen.frame.octets))).collect();
        self.mark = self.line.seen.len();
        came
    }

    /// Teaches the device that `station` is at `port`.
    pub fn teach(&mut self, port: u8, station: MacAddress) -> Check<()> {
        let frame = self.short(MacAddress::BROADCAST, station);
        let others = self.others(port);
        self.expect("a broadcast", port, &frame, &others)
    }

    /// Stations at ports 1 and 2 that the device knows.
    pub fn pair(&mut self) -> Check<(MacAddress, MacAddress)> {
        let stations = (self.station(1), self.station(2));
        self.teach(1, stations.0)?;
        self.teach(2, stations.1)?;
        Ok(stations)
    }

    /// Shows two stations and their ports with a tag of this EtherType and control information, whatever becomes of the frames.
    pub fn teach_tagged(
        &mut self,
        (port, a): (u8, MacAddress),
        (other, b): (u8, MacAddress),
        tag: &[u16; 2],
    ) -> Check<()> {
        for (port, from, to) in [(port, a, b), (other, b, a)] {
            let mut frame = self.frame(to, from, 64, 0).octets;
            let inner = frame.split_off(12);
            frame.extend(tag.iter().flat_map(|word| word.to_be_bytes()));
            frame.unsplit(inner);
            self.line.send(port, &frame)?;
        }
        let until = self.line.now() + self.quiet();
        self.line.wait(until, |_| false)?;
        self.mark = self.line.seen.len();
        Ok(())
    }

    /// Plays a script for so long, and then for the quiet time.
    pub fn play(&mut self, length: Duration, write: impl FnOnce(&mut Script)) -> Check<()> {
        let mut script = Script::default();
        write(&mut script);
        let stop = Instant::ZERO + length + self.quiet();
        self.line.play(script, stop)
    }

    /// Whether the device still forwards between ports 1 and 2, by stations of their own.
    pub fn still_works(&mut self) -> Check<()> {
        self.mark = self.line.seen.len();
        let (a, b) = (self.station(0xfff0), self.station(0xfff1));
        self.teach(2, b)?;
        let frame = self.short(b, a);
        self.expect("after it a good frame", 1, &frame, &[2])
    }
}

/// Whether `seen` has the source of `frame`.
fn is_from(frame: &Frame, seen: &Seen) -> bool {
    frame.octets.len() >= 12 && seen.frame.octets.get(6..12) == frame.octets.get(6..12)
}

/// Whether only zeros behind the IP packet of the smallest frame are missing.
fn is_without_pad(was: &[u8], is: &[u8]) -> bool {
    let smallest = 60;
    was.len() == smallest && was.starts_with(is) && was[is.len()..].iter().all(|octet| *octet == 0)
}

/// The first octet that differs.
fn difference(was: &[u8], is: &[u8]) -> String {
    if was.len() != is.len() {
        return format!("{} octets became {}", was.len(), is.len());
    }
    match was.iter().zip(is).position(|(a, b)| a != b) {
        Some(at) => format!("octet {at} was {:#04x} and is {:#04x}", was[at], is[at]),
        None => "nothing".to_owned(),
    }
}
