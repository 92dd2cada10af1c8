//! Rules of congestion notification on Ethernet: the messages of QCN and BCN, and test frames.
//!
//! The frame that a message is about is usually not in the capture, so only the message itself is judged.

use super::frame::Carried;
use super::rule::rules;
use super::{Check, Rule};
use proto::wire::error::ParseError;
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Cnm, Preface};
use proto::wire::project::{Bcn, ProjectTypes, SUBTYPE_LEN, Subtype, TestFrame};

rules! {
    CNM "cnm" "a CNM is of version 0 and holds what it says of the sampled frame, 64 octets at most",
        "IEEE 802.1Q, 33.3 and 33.4";
    FEEDBACK "cnm-feedback" "a CNM names its congestion point and says a feedback of 1 to 63",
        "IEEE 802.1Q, 32.8 and 33.4";
    ADDRESS "notification-address" "a CNM or BCN message goes from one port to one station",
        "IEEE 802.1Q, 32.9.4; design of this project for BCN";
    BCN "bcn" "a BCN message is of version 1 and holds what it says of the sampled frame",
        "this project's profile of BCN";
    TEST_FRAME "test-frame" "the pattern of a test frame is what its sender wrote",
        "this project's test frame";
}

/// Judges messages and test frames.
pub(super) fn check(check: &mut Check<'_>) {
    let Some(frame) = &check.seen.ethernet else { return };
    let Carried::Congestion(preface) = &frame.carried else { return };
    if !check.seen.is_sound_on_link() {
        return;
    }
    let body = &frame.octets[preface.octets_len()..];
    match ProjectTypes::DEFAULT.subtype(preface.ethertype(), body) {
        Some(Subtype::TestFrame) => {
            check.checked("test frames");
            test_frame(check, frame.octets.len(), &body[SUBTYPE_LEN..]);
        }
        Some(_) => {
            check.checked("BCN messages");
            whole(check, &BCN, Bcn::parse_message(&body[SUBTYPE_LEN..]));
            addresses(check, preface);
        }
        None => {
            check.checked("CNMs");
            cnm(check, body);
            addresses(check, preface);
        }
    }
}
/// The message, or `None` and a finding if it could not be parsed.
fn whole<T>(check: &mut Check<'_>, rule: &Rule, message: Result<T, ParseError>) -> Option<T> {
    message.map_err(|error| check.breaks(rule, error.reason, rule.title)).ok()
}

fn cnm(check: &mut Check<'_>, body: &[u8]) {
    let Some((cnm, _)) = whole(check, &CNM, Cnm::parse_message(body)) else { return };
    if cnm.quantized_feedback == 0 || cnm.cpid == 0 {
        let found = format_args!("feedback {}, CPID {:016x}", cnm.quantized_feedback, cnm.cpid);
        check.breaks(&FEEDBACK, found, "neither is zero");
    }
}

fn addresses(check: &mut Check<'_>, preface: &Preface) {
    let header = preface.envelope.header;
    if header.source.is_group() || header.destination.is_group() {
        let found = format_args!("from {} to {}", header.source, header.destination);
        check.breaks(&ADDRESS, found, "no address of a group");
    }
}

/// Judges the pattern, except in frames of the least size: there it may be padding that a port added.
fn test_frame(check: &mut Check<'_>, octets: usize, body: &[u8]) {
    let Some(frame) = whole(check, &TEST_FRAME, TestFrame::parse(body)) else { return };
    if octets > LEAST && !frame.holds(&body[TestFrame::LEN..]) {
        let found = format_args!("octets of frame {} of flow {}", frame.sequence, frame.flow);
        check.breaks(&TEST_FRAME, found, "each one more than the one before");
    }
}

#[cfg(test)]
mod tests;
