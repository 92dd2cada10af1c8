//! The head of a figure: buttons that save it, its subject, and what it is to be compared with.

use super::facts::Facts;
use maud::{Markup, html};
use results::run_directory::result::RunResult;
use scenario::figures::FigureName;

/// The head of the figure `name` with the subject `what`; it has buttons if the figure is drawn.
pub fn figure_head(facts: &Facts<'_>, name: FigureName, what: &str, is_drawn: bool) -> Markup {
    let result = &facts.run.run.result;
    let source =
        (name == FigureName::OverTime && !result.source.is_empty()).then_some(&result.source);
    html! {
        @if is_drawn { (buttons(name, what)) }
        p class="kicker" {
            (what)
            @match likeness(result, name) {
                Some(like) => { " · like " (like) }
                None => { @if let Some(source) = source { " · " (source) } }
            }
        }
    }
}

/// The published figure to compare figure `name` with, if the scenario names one.
pub fn likeness(result: &RunResult, name: FigureName) -> Option<&str> {
    let found = result.figures.iter().find(|likeness| likeness.of == name);
    found.map(|likeness| likeness.like.as_str())
}

/// Buttons that save a figure; the script of the page shows and handles them.
fn buttons(name: FigureName, what: &str) -> Markup {
    html! {
        div class="save" data-save=(name.word()) hidden {
            @for format in ["SVG", "CSV"] {
                button type="button" aria-label=(format!("{format}: {}", what.to_lowercase())) { (format) }
            }
        }
    }
}
