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

/// A figure: name, title, how to read it, drawing on a sheet if there is anything to draw, table.
type Printed<'a> =
    (FigureName, String, &'static str, &'a dyn Fn(&Sheet) -> Option<Picture>, String);

/// All figures of the page as files: an SVG for each sheet and the table, or nothing if the page has no picture.
pub fn files<'a>(facts: &'a Facts<'a>, figure: &'a Figure<'a>) -> Vec<File> {
    let longest_waits = LongestWaits::of(facts);
    let figures: [Printed<'_>; 5] = [
        (
            FigureName::Fabric,
            facts::trees_title(facts),
            "A line stands out by the share of time in which a frame was ready there and had to wait; bars show what each port receives.",
            &|sheet| Some(fabric::printed(facts, sheet)),
            table::fabric(facts),
        ),
        (
            FigureName::OverTime,
            facts::over_time(facts),
            figure::HOW,
            &|sheet| Some(figure.draw(sheet)),
            table::over_time(figure),
        ),
        (
            FigureName::EveryPort,
            ports::finding(facts),
            "Received over time, from nothing to one line rate, all on one scale.",
            &|sheet| Some(ports::printed(facts, sheet)),
            table::every_port(facts),
        ),
        (
            FigureName::CompletionTimes,
            completion::finding(facts),
            "A line from the first per cent of messages to the last, the middle half thick, the median a dot.",
            &|sheet| completion::printed(facts, sheet.width),
            table::completion_times(facts),
        ),
        (
            FigureName::WaitedLongest,
            longest_waits.title(),
            "Share of the measured window in which a frame was ready and had to wait.",
            &|sheet| longest_waits.draw(sheet.width),
            table::waited_longest(facts, &longest_waits),
        ),
    ];
    let result = &facts.run.run.result;
    let is_unsure = result.verdict == Verdict::Inconclusive;
    let mut files = Vec::new();
    for (name, finding, how, draw, table) in figures {
        let name_of = |end: String| format!("{}{end}", name.word());
        let like = likeness(result, name).map_or(String::new(), |like| format!("Like {like}. "));
        let about = format!("{how} {like}{}", origin(facts));
        let svg = |sheet: &Sheet| {
            let picture = draw(sheet)?;
            // The class of the group marks an inconclusive run for the style.
            let body = html! { g class=[is_unsure.then_some("unsure")] { (picture.body) } };
            let text = sheet::document(sheet, &finding, &about, &Picture { body, ..picture });
            let width = sheet.millimetres.unwrap_or_default();
            Some(File { name: name_of(format!("-{width}mm.svg")), text })
        };
        let drawn: Vec<File> = PRINTED.iter().filter_map(svg).collect();
        let csv =
            (!drawn.is_empty()).then(|| File { name: name_of(".csv".to_owned()), text: table });
        files.extend(drawn.into_iter().chain(csv));
    }
    files
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
