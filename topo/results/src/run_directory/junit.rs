//! `junit.xml`: each expectation as a test case, for continuous integration.

use crate::run_directory::WriteError;
use crate::run_directory::result::RunResult;
use crate::verdict::Verdict;
use std::fmt::Write;
use std::path::Path;

/// Writes the file into `folder`. An inconclusive run skips every case: it says nothing about them.
///
/// # Errors
/// If it cannot be written.
pub fn write(folder: &Path, result: &RunResult) -> Result<(), WriteError> {
    let file = folder.join("junit.xml");
    std::fs::write(&file, text(result)).map_err(|source| WriteError { file, source })
}

/// The document. It holds no times or host names, so the same run gives the same text.
fn text(result: &RunResult) -> String {
    let inconclusive = result.verdict == Verdict::Inconclusive;
    let cases = &result.expectations;
    let failed = cases.iter().filter(|case| case.verdict == Verdict::Fail).count();
    let (failures, skipped) = if inconclusive { (0, cases.len()) } else { (failed, 0) };
    let suite = escape(&result.scenario);
    let counts = format!("tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\"", cases.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
         <testsuite name=\"{suite}\" {counts}>\n"
    );
    for case in cases {
        let said = match &case.value {
            Some(value) => format!("{} is {value}{}", case.measure, bounds(case.min, case.max)),
            None => format!("{} has no value", case.measure),
        };
        let name = escape(&case.measure);
        // Writing to a String cannot fail.
        let _ = match case.verdict {
            _ if inconclusive => writeln!(
                text,
                "    <testcase classname=\"{suite}\" name=\"{name}\">\
                 <skipped message=\"the host did not keep up\"/></testcase>"
            ),
            Verdict::Fail => writeln!(
                text,
                "    <testcase classname=\"{suite}\" name=\"{name}\">\
                 <failure message=\"{}\">line {}: {}</failure></testcase>",
                escape(&said),
                case.line,
                escape(&case.why)
            ),
            _ => writeln!(text, "    <testcase classname=\"{suite}\" name=\"{name}\"/>"),
        };
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    let least = min.map(|min| format!(", at least {min} expected"));
    let most = max.map(|max| format!(", at most {max} expected"));
    [least, most].into_iter().flatten().collect()
}

/// The text with what XML reserves written otherwise, and what it forbids left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{0}'..='\u{8}'
            | '\u{b}'
            | '\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{fffe}'
            | '\u{ffff}' => {}
            c => escaped.push(c),
        }
    }
    escaped
}
