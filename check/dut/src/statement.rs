//! What came out of a check of a device: lines, JSON, JUnit, the statement in Markdown and HTML, and the difference of two.

use super::verdict::{Outcome, Verdict};
use quick_junit::{TestCase, TestCaseStatus};
use results::run_directory::junit::{document, failed, skipped};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The statement about one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The device's name.
    pub dut: String,
    /// Its kind.
    pub kind: String,
    /// A sentence about it.
    pub about: String,
    /// What it was: versions, and its agent.
    pub build: String,
    /// What it claims.
    pub claims: Vec<String>,
    /// The cases in the order of the register.
    pub outcomes: Vec<Outcome>,
}

/// One outcome on one line; a fault with its clause and expectation on further ones.
pub fn line(outcome: &Outcome) -> String {
    let Outcome { id, title, clause, expected, verdict, observed, .. } = outcome;
    let mut text = format!("{:<15}  {id:<8}  {title}: {observed}", verdict.word());
    if matches!(verdict, Verdict::Fail | Verdict::Deviation) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{:>27}expected: {expected}\n{:>27}clause: {clause}", "", "");
    }
    text
}

impl Statement {
    /// How many cases have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict == verdict).count()
    }

    /// The numbers of all verdicts, as a sentence.
    pub fn totals(&self) -> String {
        let count = |verdict: &Verdict| format!("{} {}", self.count(*verdict), verdict.word());
        Verdict::ALL.iter().map(count).collect::<Vec<_>>().join(", ")
    }

    /// By group, the number of each verdict in the order of [`Verdict::ALL`].
    pub fn groups(&self) -> BTreeMap<&str, [usize; 5]> {
        let mut groups = BTreeMap::new();
        for outcome in &self.outcomes {
            let counts: &mut [usize; 5] = groups.entry(outcome.group()).or_default();
            let place = Verdict::ALL.iter().position(|verdict| *verdict == outcome.verdict);
            counts[place.unwrap_or(0)] += 1;
        }
        groups
    }

    /// As JSON, which [`Statement::parse`] reads.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a statement.
    ///
    /// # Errors
    /// If the text is none.
    pub fn parse(text: &str) -> Result<Statement, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// For continuous integration. Only FAIL fails.
    pub fn junit(&self) -> String {
        let cases = self.outcomes.iter().map(|outcome| {
            let seen = &outcome.observed;
            let status = match outcome.verdict {
                Verdict::Pass => TestCaseStatus::success(),
                Verdict::Fail => failed(format!("{seen}; expected: {}", outcome.expected)),
                other => skipped(format!("{}: {seen}", other.word())),
            };
            let mut row = TestCase::new(format!("{} {}", outcome.id, outcome.title), status);
            row.set_classname(outcome.group());
            row
        });
        document(&self.dut, cases)
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let Statement { dut, kind, about, build, claims, .. } = self;
        let mut text = format!(
            "# Statement of conformance: {dut}\n\nMade by `pausebed check --dut`; do not edit. {about}\n\n\
             | | |\n|---|---|\n| kind | {kind} |\n| device | {} |\n| claims | {} |\n| cases | {} |\n\n\
             | group |{}\n|---|{}\n",
            cell(build),
            claims.join(", "),
            self.totals(),
            Verdict::ALL.map(|verdict| format!(" {} |", verdict.word())).concat(),
            "---|".repeat(Verdict::ALL.len()),
        );
        for (group, counts) in self.groups() {
            let counts = counts.map(|count| format!(" {count} |")).concat();
            let _ = writeln!(text, "| {group} |{counts}");
        }
        text += "\n| case | rule | clause | verdict | expected | observed |\n|---|---|---|---|---|---|\n";
        for outcome in &self.outcomes {
            let Outcome { id, title, clause, expected, verdict, observed, .. } = outcome;
            let cells = [title, clause, verdict.word(), expected, observed].map(cell).join(" | ");
            let _ = writeln!(text, "| {id} | {cells} |");
        }
        text
    }

    /// As a page of its own.
    pub fn html(&self) -> String {
        let Statement { dut, kind, about, build, claims, .. } = self;
        let mut rows = String::new();
        for outcome in &self.outcomes {
            let Outcome { id, title, clause, expected, verdict, observed, capture, .. } = outcome;
            let word = verdict.word();
            let cells = [title, clause, expected, observed].map(|text| escaped(text));
            let [title, clause, expected, observed] = cells;
            let shown = capture
                .as_ref()
                .map_or(String::new(), |name| format!("<a href=\"{0}\">{0}</a>", escaped(name)));
            let _ = writeln!(
                rows,
                "<tr class=\"{word}\"><td>{id}<td>{title}<td>{word}<td>{expected}<td>{observed}<td>{clause}<td>{shown}"
            );
        }
        format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{dut}</title>\n<style>{STYLE}</style>\n\
             <h1>Statement of conformance: {dut}</h1>\n<p>{about}</p>\n\
             <p>{kind}; {build}; claims: {claims}.</p>\n<p><b>{totals}</b></p>\n\
             <table><tr><th>case<th>rule<th>verdict<th>expected<th>observed<th>clause<th>capture\n{rows}</table></html>\n",
            dut = escaped(dut),
            about = escaped(about),
            build = escaped(build),
            claims = escaped(&claims.join(", ")),
            totals = self.totals(),
        )
    }
}

const STYLE: &str = "body{font:15px/1.5 sans-serif;margin:2em;color-scheme:light dark}\
table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.3em .6em;text-align:left;vertical-align:top}\
.FAIL td:nth-child(3){background:#d338}.DEVIATION td:nth-child(3){background:#db38}\
.PASS td:nth-child(3){background:#3a58}";

/// What differs between two statements, as lines; cases that only one has are named too.
pub fn compare(before: &Statement, after: &Statement) -> Vec<String> {
    let by_id = |statement: &Statement| -> BTreeMap<String, Outcome> {
        let pairs = statement.outcomes.iter().map(|outcome| (outcome.id.clone(), outcome.clone()));
        pairs.collect()
    };
    let (old, mut new) = (by_id(before), by_id(after));
    let mut lines = Vec::new();
    for (id, was) in old {
        match new.remove(&id) {
            None => lines.push(format!("{id}: {} only in {}", was.verdict.word(), before.dut)),
            Some(is) if is.verdict != was.verdict => lines.push(format!(
                "{id}  {}: {} ({}) → {} ({})",
                was.title,
                was.verdict.word(),
                was.observed,
                is.verdict.word(),
                is.observed
            )),
            Some(_) => {}
        }
    }
    let added = new.into_iter();
    lines
        .extend(added.map(|(id, is)| format!("{id}: {} only in {}", is.verdict.word(), after.dut)));
    lines
}

/// Text in a cell of a table.
fn cell(text: impl AsRef<str>) -> String {
    text.as_ref().replace('|', "\\|").replace('\n', " ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(dut: &str, verdicts: &[(&str, Verdict)]) -> Statement {
        let outcome = |(id, verdict): &(&str, Verdict)| Outcome {
            id: (*id).to_owned(),
            title: "a rule".to_owned(),
            clause: "a clause".to_owned(),
            expected: "a | b".to_owned(),
            verdict: *verdict,
            observed: "<script>".to_owned(),
            capture: Some(format!("{id}.pcapng")),
            took_ms: 1,
        };
        Statement {
            dut: dut.to_owned(),
            kind: "ethernet-switch".to_owned(),
            about: String::new(),
            build: "one".to_owned(),
            claims: vec!["pfc".to_owned()],
            outcomes: verdicts.iter().map(outcome).collect(),
        }
    }

    #[test]
    fn a_statement_returns_from_json_and_escapes_what_it_quotes() {
        let one = statement("one", &[("L2-01", Verdict::Pass), ("FC-01", Verdict::Fail)]);
        assert_eq!(Statement::parse(&one.json()).expect("a statement"), one);
        assert!(
            one.markdown().contains("a \\| b")
                && one.markdown().contains("| FC | 0 | 1 | 0 | 0 | 0 |")
        );
        assert!(!one.html().contains("<script>") && one.html().contains("FC-01.pcapng"));
        assert!(one.junit().contains("failures=\"1\""), "{}", one.junit());
        assert!(Statement::parse("{}").is_err());
    }

    #[test]
    fn a_comparison_names_what_changed_and_what_only_one_has() {
        let old = statement(
            "old",
            &[("L2-01", Verdict::Pass), ("L2-02", Verdict::Fail), ("L2-03", Verdict::Pass)],
        );
        let new = statement(
            "new",
            &[("L2-01", Verdict::Pass), ("L2-02", Verdict::Pass), ("L2-04", Verdict::Pass)],
        );
        let lines = compare(&old, &new);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].contains("FAIL") && lines[0].contains("PASS"));
        assert!(lines[1].contains("only in old") && lines[2].contains("only in new"));
        assert!(compare(&old, &old).is_empty());
    }
}
