//! `[[outage]]`: links of Ethernet that are down for a while.

use crate::fabric::FabricSettings;
use crate::keyfile::fields::{Fields, TEXTS, Texts};
use crate::names;
use proto::link::outage::Outage;
use proto::params::{KeyTable, Params};
use proto::technology::Technology;
use proto::units::Instant;
use std::collections::BTreeSet;

/// An outage, and the cable that it is of.
pub type CableOutage = (usize, Outage);

/// The keys of `[[outage]]`.
pub static KEYS: KeyTable = KeyTable::new(
    "a link of Ethernet that is down for a while: both ends keep what waits, and clear pauses",
    Down::KEYS,
);

proto::params! {
    /// One `[[outage]]` as written.
    pub struct Down {
        /// Either end of each cable, as node:port.
        at: Texts = TEXTS, Required;
        /// When it goes down.
        from: Instant = Time, Required;
        /// When it is up again.
        to: Instant = Span, Required;
    }
}

/// Reads every `[[outage]]`, one for each cable named, in ascending order.
pub fn read(root: &Fields<'_>, fabric: &FabricSettings) -> Vec<CableOutage> {
    let mut all: Vec<CableOutage> = Vec::new();
    for (fields, Down { at, from, to }) in root.each("outage") {
        if fabric.technology == Technology::Infiniband {
            let hint = "an impairment that loses all frames of kind \"link\"";
            fields.error("at", "links of InfiniBand train instead of being down", hint);
            continue;
        }
        if to <= from {
            fields.error("to", "it would be up before it is down", "later than from");
            continue;
        }
        let ends = fields.gather("at", &at, |text| names::ends(&fabric.topology, text));
        let cables = ends.into_iter().flatten().filter_map(|end| fabric.topology.cable_at(end));
        for cable in cables.collect::<BTreeSet<usize>>() {
            let meets = |(other, outage): &CableOutage| {
                *other == cable && outage.from <= to && from <= outage.to
            };
            if all.iter().any(meets) {
                fields.error("from", "it is down then already", "one outage for both");
            }
            all.push((cable, Outage { from, to }));
        }
    }
    all.sort_by_key(|(_, outage)| outage.from);
    all
}

#[cfg(test)]
mod tests {
    use crate::Scenario;
    use crate::render::render;
    use proto::link::{FlowControlConfig, LinkConfig};

    fn outage(at: &str, from: u64, to: u64) -> String {
        format!("[[outage]]\nat = \"{at}\"\nfrom = \"{from} ms\"\nto = \"{to} ms\"\n")
    }

    fn star(technology: &str, rest: &str) -> String {
        format!(
            "schema = 1\nname = \"star\"\nrun = {{ duration = \"1 s\" }}\n[fabric]\nshape = \"star\"\nhosts = 2\n\
             technology = \"{technology}\"\n{rest}"
        )
    }

    fn ethernet(rest: &str) -> String {
        let room =
            "switch = { headroom = \"80 KB\", buffer = \"1 MB\" }\nnic = { buffer = \"1 MB\" }\n";
        star("ethernet", &format!("{room}{rest}"))
    }

    fn milliseconds(link: &LinkConfig) -> Vec<(u64, u64)> {
        let FlowControlConfig::Pause(pause) = &link.control else { return Vec::new() };
        let ms = |at: proto::units::Instant| at.as_ps() / 1_000_000_000;
        pause.outages.iter().map(|outage| (ms(outage.from), ms(outage.to))).collect()
    }

    #[test]
    fn both_ends_of_a_cable_are_told_in_ascending_order_and_nobody_else() {
        let text = ethernet(&(outage("h1:1", 30, 40) + &outage("s0:2", 10, 20)));
        let lab = render(&Scenario::parse(&text, &[]).expect("a good scenario"));
        let links = [&lab.nics[0].link, &lab.nics[1].link, &lab.switches[0].ports[1].link];
        let both = vec![(10, 20), (30, 40)];
        assert_eq!(links.map(milliseconds), [Vec::new(), both.clone(), both]);
    }

    #[test]
    fn outages_that_meet_run_back_or_are_of_infiniband_are_refused() {
        let meeting = outage("h1:1", 10, 20) + &outage("s0:2", 20, 30);
        let fault = |text: &str| Scenario::parse(text, &[]).expect_err("it is bad").to_string();
        assert!(fault(&ethernet(&meeting)).contains("down then already"));
        assert!(fault(&ethernet(&outage("h0:1", 20, 10))).contains("up before it is down"));
        let infiniband = star("infiniband", &outage("h1:1", 10, 20));
        assert!(fault(&infiniband).contains("train"));
    }
}
