//! Rules of the CRCs.

use super::Check;
use super::rule::rules;
use proto::frame::FrameKind;
use proto::wire::error::{ParseError, Reason};

rules! {
    ICRC "icrc" "the invariant CRC holds", "IBTA Vol 1, 7.8.1, A16, A17";
    VCRC "vcrc" "the variant CRC holds", "IBTA Vol 1, 7.8.2";
    FCS "fcs" "the frame check sequence holds", "IEEE 802.3, 3.2.9";
    LPCRC "lpcrc" "the link packet's CRC holds", "IBTA Vol 1, 7.9.4";
}

/// Judges every CRC of a frame.
pub(super) fn check(check: &mut Check<'_>) {
    let seen = check.seen;
    for (rule, outcome, octets) in [
        (&ICRC, seen.checks.icrc, 4),
        (&VCRC, seen.checks.vcrc, 2),
        (&FCS, seen.checks.fcs, 4),
        (&LPCRC, seen.checks.lpcrc, 2),
    ] {
        let Some(outcome) = outcome else { continue };
        check.checked(rule.id);
        if let Err(error) = outcome {
            let (present, computed) = as_sent(&error, octets);
            check.breaks(rule, present, computed);
        }
    }
    if seen.is_cut() && (seen.kind != FrameKind::Ethernet || seen.headers.is_some()) {
        check.not_checked("CRCs of frames cut in the file");
    }
}
/// A failed check as the octets are on the wire: found and expected.
fn as_sent(error: &ParseError, octets: usize) -> (String, String) {
    let Reason::Check { computed, present } = error.reason else {
        return (error.reason.to_string(), "a whole frame".to_owned());
    };
    let text = |check: u32| {
        let sent = check.to_le_bytes();
        sent[..octets].iter().map(|octet| format!("{octet:02x}")).collect::<String>()
    };
    (text(present), text(computed))
}
