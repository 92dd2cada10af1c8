//! `[[outage]]`: links of Ethernet that are down for a while.

use crate::fabric::FabricSettings;
use crate::keyfile::fields::Fields;
use crate::keyfile::problem::{Complaint, Problems};
use crate::names;
use proto::link::FlowControlConfig;
use proto::link::outage::Outage;
use proto::params::{Key, KeyTable, Kind};

/// An outage, and the cable that it is of.
pub type CableOutage = (usize, Outage);

/// The keys of `[[outage]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "a link of Ethernet that is down for a while: both ends keep what waits, and forget pauses",
    &[
        Key::required(
            "at",
            Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]),
            "either end of each cable, as node:port",
        ),
        Key::required("from", Kind::Time, "when it goes down"),
        Key::required("to", Kind::Span, "when it is up again"),
    ],
);

/// Reads every `[[outage]]`, one for each cable named, in ascending order.
pub fn read(
    root: &Fields<'_>,
    fabric: Option<&FabricSettings>,
    problems: &mut Problems,
) -> Vec<CableOutage> {
    let mut all: Vec<CableOutage> = Vec::new();
    for fields in root.tables("outage") {
        let Some(fabric) = fabric else { continue };
        if !matches!(fabric.link.control, FlowControlConfig::Pause(_)) {
            let message = "links of InfiniBand train instead of being down";
            let hint = "an impairment that loses all frames of kind \"link\"";
            fields.report(problems, "at", Complaint::new(message, hint));
            continue;
        }
        let Some((from, to)) = fields.instant("from").zip(fields.instant("to")) else { continue };
        if to <= from {
            let complaint = Complaint::new("it would be up before it is down", "later than from");
            fields.report(problems, "to", complaint);
            continue;
        }
        for cable in cables(&fields, fabric, problems) {
            let meets = |(other, outage): &CableOutage| {
                *other == cable && outage.from <= to && from <= outage.to
            };
            if all.iter().any(meets) {
                let complaint = Complaint::new("it is down then already", "one outage for both");
                fields.report(problems, "from", complaint);
            }
            all.push((cable, Outage { from, to }));
        }
    }
    all.sort_by_key(|(_, outage)| outage.from);
    all
}

fn cables(fields: &Fields<'_>, fabric: &FabricSettings, problems: &mut Problems) -> Vec<usize> {
    let mut all = Vec::new();
    for (text, place) in fields.texts("at") {
        match names::ends(&fabric.topology, text) {
            Ok(ends) => {
                all.extend(ends.iter().filter_map(|end| fabric.topology.cable_at(*end)));
            }
            Err(complaint) => problems.report(place, format!("{}.at", fields.path), complaint),
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use crate::Scenario;
    use crate::render::render;
    use conformance::ethernet;
    use conformance::star::star;
    use proto::link::{FlowControlConfig, LinkConfig};

    fn outage(at: &str, from: u64, to: u64) -> String {
        format!("[[outage]]\nat = \"{at}\"\nfrom = \"{from} ms\"\nto = \"{to} ms\"\n")
    }

    fn milliseconds(link: &LinkConfig) -> Vec<(u64, u64)> {
        let FlowControlConfig::Pause(pause) = &link.control else { return Vec::new() };
        let ms = |at: proto::units::Instant| at.as_ps() / 1_000_000_000;
        pause.outages.iter().map(|outage| (ms(outage.from), ms(outage.to))).collect()
    }

    #[test]
    fn both_ends_of_a_cable_are_told_in_ascending_order_and_nobody_else() {
        let outages = outage("h2:1", 30, 40) + &outage("s0:2", 10, 20);
        let text = ethernet::star(2, "1 s", "", &(ethernet::roomy("") + &outages));
        let lab = render(&Scenario::parse(&text, &[]).expect("a good scenario"));
        let links = [&lab.nics[0].link, &lab.nics[1].link, &lab.switches[0].ports[1].link];
        let both = vec![(10, 20), (30, 40)];
        assert_eq!(links.map(milliseconds), [Vec::new(), both.clone(), both]);
    }

    #[test]
    fn outages_that_meet_run_back_or_are_of_infiniband_are_refused() {
        let meeting = outage("h2:1", 10, 20) + &outage("s0:2", 20, 30);
        let told = |text: &str| Scenario::parse(text, &[]).expect_err("it is bad").to_string();
        let ethernet = |rest: &str| ethernet::star(2, "1 s", "", &(ethernet::roomy("") + rest));
        assert!(told(&ethernet(&meeting)).contains("down then already"));
        assert!(told(&ethernet(&outage("h1:1", 20, 10))).contains("up before it is down"));
        let infiniband = star(2, "1 s", "", &outage("h1:1", 10, 20));
        assert!(told(&infiniband).contains("train"));
    }
}
