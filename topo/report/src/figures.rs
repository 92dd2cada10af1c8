//! The figures of a page as separate files: SVG for one and two columns of print, and the numbers
//! of each as CSV (docs/spec/seeing.md 5).

use super::facts::{self, Facts};
use super::figure::{self, Figure};
use super::figure_head::likeness;
use super::longest_waits::LongestWaits;
use super::sheet::{self, PRINTED, Picture, Sheet};
use super::{completion, fabric, ports};
use chart::number;
use maud::html;
use results::verdict::Verdict;
use scenario::figures::FigureName;

pub(super) mod table;

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Name of the file.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// Draws a figure, if there is anything to draw.
type Draw<'a> = dyn Fn(&Sheet) -> Option<Picture> + 'a;

/// A figure: name, title, how to read it, drawing, table.
struct Printed<'a> {
    name: FigureName,
    finding: String,
    how: &'static str,
    draw: Box<Draw<'a>>,
    table: String,
}

/// All figures of the page as files.
pub fn files<'a>(facts: &'a Facts<'a>, figure: &'a Figure<'a>) -> Vec<File> {
    let longest_waits = LongestWaits::of(facts);
    let figures = [
        Printed {
            name: FigureName::Fabric,
            finding: facts::standstill(facts),
            how: "A line stands out by the share of time in which a frame was ready there and had to wait; bars show what each port receives.",
            draw: Box::new(|sheet| Some(fabric::printed(facts, sheet))),
            table: table::fabric(facts),
        },
        Printed {
            name: FigureName::OverTime,
            finding: facts::over_time(facts),
            how: figure::HOW,
            draw: Box::new(|sheet| Some(figure.draw(sheet))),
            table: table::over_time(figure),
        },
        Printed {
            name: FigureName::EveryPort,
            finding: ports::finding(facts),
            how: "Received over time, from nothing to one line rate, all on one scale.",
            draw: Box::new(|sheet| Some(ports::printed(facts, sheet))),
            table: table::every_port(facts),
        },
        Printed {
            name: FigureName::CompletionTimes,
            finding: completion::finding(facts),
            how: "A line from the first per cent of messages to the last, the middle half thick, the median a dot.",
            draw: Box::new(|sheet| completion::printed(facts, sheet.width)),
            table: table::completion_times(facts),
        },
        Printed {
            name: FigureName::WaitedLongest,
            finding: longest_waits.title(),
            how: "Share of the measured window in which a frame was ready and had to wait.",
            draw: Box::new(|sheet| longest_waits.draw(sheet.width)),
            table: table::waited_longest(facts, &longest_waits),
        },
    ];
    figures.iter().flat_map(|printed| printed.files(facts)).collect()
}

impl Printed<'_> {
    /// One SVG for each sheet, and the table; nothing if the page has no picture.
    fn files(&self, facts: &Facts<'_>) -> Vec<File> {
        let is_unsure = facts.run.run.result.verdict == Verdict::Inconclusive;
        let like = likeness(&facts.run.run.result, self.name);
        let like = like.map_or(String::new(), |like| format!("Like {like}. "));
        let about = format!("{} {like}{}", self.how, origin(facts));
        let svg = |sheet: &Sheet| {
            let picture = (self.draw)(sheet)?;
            // The class of the group tells the style that nothing counts.
            let body = html! { g class=[is_unsure.then_some("unsure")] { (picture.body) } };
            let text = sheet::document(sheet, &self.finding, &about, &Picture { body, ..picture });
            let width = sheet.millimetres.unwrap_or_default();
            Some(File { name: format!("{}-{width}mm.svg", self.name.word()), text })
        };
        let mut files: Vec<File> = PRINTED.iter().filter_map(svg).collect();
        if !files.is_empty() {
            files
                .push(File { name: format!("{}.csv", self.name.word()), text: self.table.clone() });
        }
        files
    }
}

/// The runs of a figure, and the time of its numbers.
fn origin(facts: &Facts<'_>) -> String {
    let of = |side: &facts::Side<'_>| {
        let result = &side.run.result;
        format!("{} with {}, seed {}", result.scenario, result.scheme, result.seed)
    };
    let base = facts.base.as_ref().map_or(String::new(), |base| format!(", beside {}", of(base)));
    let unsure = match facts.run.run.result.verdict {
        Verdict::Inconclusive => " The host did not keep up: nothing of it counts.",
        Verdict::Pass | Verdict::Fail => "",
    };
    let (run, at) = (of(&facts.run), number::tau(facts.cursor()));
    format!("Of {run}{base}; numbers are those at {at}.{unsure}")
}
