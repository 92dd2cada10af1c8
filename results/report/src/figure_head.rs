//! The head of a figure: buttons that save it, its subject, and what it is to be compared with.

use super::facts::Facts;
use maud::{Markup, html};
use results::run_directory::result::RunResult;
use scenario::figures::FigureName;

/// The head of the figure `name` with the subject `what`; it has buttons if the figure is drawn.
pub fn figure_head(facts: &Facts<'_>, name: FigureName, what: &str, is_drawn: bool) -> Markup {
    let result = &facts.run.run.result;
    let source = (name == FigureName::OverTime).then_some(result.source.as_str());
    let like = likeness(result, name).map(|like| format!("like {like}"));
    let beside = like.as_deref().or(source).unwrap_or_default();
    html! {
        @if is_drawn {
            // The script of the page shows and handles these.
            div class="save" data-save=(name.word()) hidden {
                @for format in ["SVG", "CSV"] {
                    button type="button" aria-label=(format!("{format}: {}", what.to_lowercase())) { (format) }
                }
            }
        }
        p class="kicker" { (what) @if !beside.is_empty() { " · " (beside) } }
    }
}

/// The published figure to compare figure `name` with, if the scenario names one.
pub fn likeness(result: &RunResult, name: FigureName) -> Option<&str> {
    let found = result.figures.iter().find(|likeness| likeness.of == name);
    found.map(|likeness| likeness.like.as_str())
}
