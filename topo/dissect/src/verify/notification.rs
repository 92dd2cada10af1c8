//! Rules of congestion notification on Ethernet: the messages of QCN and BCN, and test frames.
//!
//! What a message is about is not in the capture as a rule, so what is judged is what it says of itself.

use super::frame::Carried;
use super::{Family, Findings, Rule, Seen, Tally};
use proto::wire::error::ParseError;
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Cnm, Preface, ethertype};
use proto::wire::project::{Bcn, ProjectTypes, SUBTYPE_LEN, Subtype, TestFrame};

/// The rules of this file.
pub const RULES: &[Rule] = &[CNM, FEEDBACK, ADDRESS, BCN, TEST_FRAME];

const CNM: Rule = Rule {
    id: "cnm",
    title: "a CNM is of version 0 and holds what it says of the sampled frame, 64 octets at most",
    source: "IEEE 802.1Q, 33.3 and 33.4",
};
const FEEDBACK: Rule = Rule {
    id: "cnm-feedback",
    title: "a CNM names its congestion point and says a feedback of 1 to 63",
    source: "IEEE 802.1Q, 32.8 and 33.4",
};
const ADDRESS: Rule = Rule {
    id: "notification-address",
    title: "a CNM or BCN message goes from one port to one station",
    source: "IEEE 802.1Q, 32.9.4; design of this project for BCN",
};
const BCN: Rule = Rule {
    id: "bcn",
    title: "a BCN message is of version 1 and holds what it says of the sampled frame",
    source: "this project's profile of BCN",
};
const TEST_FRAME: Rule = Rule {
    id: "test-frame",
    title: "the pattern of a test frame is what its sender wrote",
    source: "this project's test frame",
};

/// The family.
pub struct Notifications;

impl Family for Notifications {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let Some(frame) = &seen.ethernet else { return };
        let Carried::Congestion(preface) = &frame.carried else { return };
        if !seen.is_sound_on_link() {
            return;
        }
        let body = &frame.octets[preface.octets_len()..];
        match subtype(preface, body) {
            Some(Subtype::TestFrame) => {
                tally.checked("test frames", 1);
                test_frame(seen, frame.octets.len(), body, findings);
            }
            Some(_) => {
                tally.checked("BCN messages", 1);
                let message = Bcn::parse_message(&body[SUBTYPE_LEN..]);
                whole(seen, &BCN, message.map(drop), findings);
                addresses(seen, preface, findings);
            }
            None => {
                tally.checked("CNMs", 1);
                cnm(seen, body, findings);
                addresses(seen, preface, findings);
            }
        }
    }
}

fn subtype(preface: &Preface, body: &[u8]) -> Option<Subtype> {
    ProjectTypes::DEFAULT.subtype(preface.ethertype(), body)
}

/// There is something here to judge.
pub(super) fn is_announced(preface: &Preface, body: &[u8]) -> bool {
    let subtype = subtype(preface, body);
    preface.ethertype() == ethertype::CNM
        || matches!(subtype, Some(Subtype::TestFrame | Subtype::Bcn))
}

fn whole(
    seen: &Seen<'_>,
    rule: &Rule,
    message: Result<(), ParseError>,
    findings: &mut Findings,
) -> bool {
    if let Err(error) = message {
        let (found, expected) = (|| error.reason.to_string(), || rule.title.to_owned());
        findings.report(rule, seen, found, expected);
    }
    message.is_ok()
}

fn cnm(seen: &Seen<'_>, body: &[u8], findings: &mut Findings) {
    let message = Cnm::parse_message(body);
    if !whole(seen, &CNM, message.map(drop), findings) {
        return;
    }
    let Ok((cnm, _)) = message else { return };
    if cnm.quantized_feedback == 0 || cnm.cpid == 0 {
        let found = || format!("feedback {}, CPID {:016x}", cnm.quantized_feedback, cnm.cpid);
        findings.report(&FEEDBACK, seen, found, || "neither is zero".to_owned());
    }
}

fn addresses(seen: &Seen<'_>, preface: &Preface, findings: &mut Findings) {
    let header = preface.envelope.header;
    if header.source.is_group() || header.destination.is_group() {
        let found = || format!("from {} to {}", header.source, header.destination);
        findings.report(&ADDRESS, seen, found, || "no address of a group".to_owned());
    }
}

/// What fills a frame up to the least size is not the sender's.
fn test_frame(seen: &Seen<'_>, octets: usize, body: &[u8], findings: &mut Findings) {
    let body = &body[SUBTYPE_LEN..];
    let frame = match TestFrame::parse(body) {
        Ok(frame) => frame,
        Err(error) => {
            whole(seen, &TEST_FRAME, Err(error), findings);
            return;
        }
    };
    if octets > LEAST && !frame.holds(&body[TestFrame::LEN..]) {
        let found = || format!("octets of frame {} of flow {}", frame.sequence, frame.flow);
        findings
            .report(&TEST_FRAME, seen, found, || "each one more than the one before".to_owned());
    }
}

#[cfg(test)]
mod tests;
