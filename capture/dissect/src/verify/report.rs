//! Checks a capture from its first frame to its last and reports the findings.

use super::frame::{Carried, EthernetFrame};
use super::packet::PacketHeaders;
use super::ports::Ports;
use super::rule::Severity;
use super::rules::FAMILIES;
use super::{At, Check, Checks, Family, Finding, Rule, Seen, Settings, Tally};
use capture::reader::{CaptureReader, CapturedFrame, ReadError};
use proto::frame::FrameKind;
use proto::units::BitRate;
use proto::wire::infiniband::crc::{verify_icrc, verify_lpcrc, verify_vcrc};
use proto::wire::infiniband::envelope;
use proto::wire::roce;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read;

/// The result for a capture, as `--json` prints it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Version of this format.
    pub schema: u32,
    /// The file's name.
    pub file: String,
    /// "fail" if a finding is a violation or a deviation, "pass" if none is, "unreadable" if reading failed before the
    /// end of the file.
    pub verdict: &'static str,
    /// Frames read, frames of unknown kinds included.
    pub frames: u64,
    /// The first findings of each rule, in the order of the file.
    pub findings: Vec<Finding>,
    /// How many frames broke each rule, with those that `findings` leaves out.
    pub counts: BTreeMap<&'static str, u64>,
    /// How much was checked, by subject.
    #[serde(flatten)]
    pub tally: Tally,
    /// Where and why reading stopped before the end of the file.
    pub error: Option<String>,
}

impl Report {
    /// Adds a finding about the frame `at`; its text is made only if it is among the first `kept` of its rule.
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        kept: u64,
        at: At<'_>,
        found: impl Display,
        expected: impl Display,
    ) {
        let count = self.counts.entry(rule.id).or_default();
        *count += 1;
        if *count > kept {
            return;
        }
        self.findings.push(Finding {
            frame: at.frame,
            interface: at.interface.to_owned(),
            direction: at.direction,
            rule: rule.id,
            severity: rule.severity,
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }

    /// Findings of rules with this severity, with those that [`Report::findings`] leaves out.
    pub fn count(&self, severity: Severity) -> u64 {
        let rules = FAMILIES.iter().flat_map(|row| row.rules);
        let counts = rules.filter(|rule| rule.severity == severity);
        counts.filter_map(|rule| self.counts.get(rule.id)).sum()
    }

    /// Violations and deviations.
    pub fn faults(&self) -> u64 {
        self.count(Severity::Violation) + self.count(Severity::Deviation)
    }
}

/// Default number of findings kept for each rule.
pub const KEPT: u64 = 1000;

/// Checks the capture `input`, whose name is `file`; keeps `kept` findings for each rule.
///
/// # Errors
/// If it does not begin like a capture. If reading fails later, the report covers the frames before.
pub fn verify(
    input: impl Read,
    file: &str,
    settings: &Settings,
    kept: u64,
) -> Result<Report, ReadError> {
    let mut reader = CaptureReader::new(input)?;
    let mut families: Vec<Box<dyn Family>> =
        FAMILIES.iter().map(|row| (row.make)(settings)).collect();
    let mut ports = Ports::default();
    let mut report = Report { schema: 1, file: file.to_owned(), ..Report::default() };
    let (mut yielded, mut error) = (0, None);
    while let Some(next) = reader.next() {
        match next {
            Ok(frame) => {
                yielded += 1;
                report.frames = yielded + reader.skipped().values().sum::<u64>();
                check(&frame, &mut families, &mut ports, &mut report, kept);
            }
            Err(broken) => error = Some(broken),
        }
    }
    families.iter_mut().for_each(|family| family.finish(&mut report, kept));
    report.findings.sort_by_key(|finding| finding.frame);
    for (reason, count) in reader.skipped() {
        report.tally.not_checked(reason, *count);
    }
    report.frames = yielded + reader.skipped().values().sum::<u64>();
    report.verdict = match (&error, report.faults()) {
        (Some(_), _) => "unreadable",
        (None, 0) => "pass",
        (None, _) => "fail",
    };
    report.error = error.map(|error| describe(&error, report.frames));
    Ok(report)
}

/// Why reading stopped after `frames` frames.
fn describe(error: &ReadError, frames: u64) -> String {
    match (error, std::error::Error::source(error)) {
        (ReadError::Torn, _) => format!("frame {frames} is torn: the file ends within it"),
        (_, Some(source)) => format!("after frame {frames}: {error}: {source}"),
        (_, None) => format!("after frame {frames}: {error}"),
    }
}

fn check(
    frame: &CapturedFrame,
    families: &mut [Box<dyn Family>],
    ports: &mut Ports,
    report: &mut Report,
    kept: u64,
) {
    let place = ports.place(frame);
    let octets = &frame.frame.octets[..];
    let wire_size = frame.wire_size as usize;
    let kind = frame.frame.kind;
    let ethernet = (kind == FrameKind::Ethernet).then(|| EthernetFrame::of(octets, wire_size));
    let headers = match (kind, ethernet.map(|ethernet| ethernet.carried)) {
        (FrameKind::Infiniband, _) => PacketHeaders::of(octets, wire_size),
        (_, Some(Carried::Roce(layout))) => PacketHeaders::of_roce(octets, &layout),
        _ => None,
    };
    let seen = Seen {
        number: report.frames,
        at_ns: frame.at_ns,
        stamps: frame.stamps,
        place,
        interface: frame.interface.as_deref(),
        rate: frame.speed.and_then(BitRate::new),
        kind,
        octets,
        wire_size,
        checks: checks(kind, octets, wire_size, ethernet.as_ref()),
        ethernet,
        headers,
        damaged_before: ports.damaged(place),
    };
    for family in families {
        family.check(&mut Check { seen: &seen, report, port: ports.name(place), kept });
    }
    let unreadable =
        seen.believed().is_none_or(|headers| headers.bth.is_none() && !headers.is_raw());
    let of_a_flow = match ethernet.map(|ethernet| ethernet.carried) {
        Some(Carried::Roce(_) | Carried::Refused(_)) => true,
        Some(_) => !seen.is_sound_on_link(),
        None => kind == FrameKind::Infiniband,
    };
    if of_a_flow && unreadable {
        ports.count_damaged(place);
    }
}

fn checks(
    kind: FrameKind,
    octets: &[u8],
    wire_size: usize,
    ethernet: Option<&EthernetFrame<'_>>,
) -> Checks {
    if octets.len() < wire_size {
        return Checks::default();
    }
    let none = Checks::default();
    match (kind, ethernet) {
        (FrameKind::Infiniband, _) => {
            let has_icrc = matches!(envelope::bth_offset(octets), Ok(Some(_)));
            let icrc = has_icrc.then(|| verify_icrc(octets));
            Checks { icrc, vcrc: Some(verify_vcrc(octets)), ..none }
        }
        (FrameKind::InfinibandLink, _) => Checks { lpcrc: Some(verify_lpcrc(octets)), ..none },
        (FrameKind::Ethernet, Some(frame)) => {
            let has_icrc = matches!(frame.carried, Carried::Roce(_));
            let icrc = has_icrc.then(|| roce::checks::verify_icrc(frame.octets));
            Checks { icrc, fcs: frame.fcs, ..none }
        }
        (FrameKind::Ethernet, None) => none,
    }
}
