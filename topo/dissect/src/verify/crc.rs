//! Rules of the CRCs.

use super::{Family, Findings, Rule, Seen, Tally};
use proto::frame::FrameKind;
use proto::wire::error::{ParseError, Reason};

/// The rules of this file.
pub const RULES: &[Rule] = &[ICRC, VCRC, FCS, LPCRC];

const ICRC: Rule =
    Rule { id: "icrc", title: "the invariant CRC holds", source: "IBTA Vol 1, 7.8.1, A16, A17" };
const VCRC: Rule = Rule { id: "vcrc", title: "the variant CRC holds", source: "IBTA Vol 1, 7.8.2" };
const FCS: Rule =
    Rule { id: "fcs", title: "the frame check sequence holds", source: "IEEE 802.3, 3.2.9" };
const LPCRC: Rule =
    Rule { id: "lpcrc", title: "the link packet's CRC holds", source: "IBTA Vol 1, 7.9.4" };

/// The family.
pub struct Crcs;

impl Family for Crcs {
    fn look(&mut self, seen: &Seen<'_>, findings: &mut Findings, tally: &mut Tally) {
        let checks = [
            (&ICRC, seen.checks.icrc, 4),
            (&VCRC, seen.checks.vcrc, 2),
            (&FCS, seen.checks.fcs, 4),
            (&LPCRC, seen.checks.lpcrc, 2),
        ];
        for (rule, outcome, octets) in checks {
            let Some(outcome) = outcome else { continue };
            tally.checked(rule.id, 1);
            let Err(error) = outcome else { continue };
            let (present, computed) = as_sent(&error, octets);
            findings.report(rule, seen, || present, || computed);
        }
        if seen.is_cut() && (seen.kind != FrameKind::Ethernet || seen.anatomy.is_some()) {
            tally.not_checked("CRCs of frames cut in the file", 1);
        }
    }
}

/// A failed check as the octets stand on the wire: found and expected.
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
