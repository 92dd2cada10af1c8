//! `pausebed man DIR`: manual pages of all commands, or one page for the book.

use crate::exit::{Exit, Failure, Outcome};
use clap::Command;
use std::fmt::Write;
use std::path::PathBuf;

/// Columns of the page for the book.
const PAGE_WIDTH: usize = 100;

/// Options of `man`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The folder for pausebed.1, pausebed-run.1 and so on.
    #[arg(value_name = "DIR", required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Print the help of all commands as one page in Markdown: a chapter of the book.
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

/// Writes a page for `command` and for each of its commands.
pub(super) fn run(options: &Options, command: Command) -> Outcome {
    let Some(folder) = &options.folder else {
        print!("{}", page(command));
        return Ok(Exit::Good);
    };
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(Failure::cannot_write(folder))?;
    Ok(Exit::Good)
}

/// The help of all commands.
fn page(command: Command) -> String {
    let mut command = command.version("").term_width(PAGE_WIDTH);
    command.build();
    let mut page = "# Commands\n\nThis page is made from `--help`.\n".to_owned();
    describe(&mut command, &mut page);
    page
}

/// The help of a command and of those below it.
fn describe(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or("pausebed").to_owned();
    let help = command.render_long_help().to_string();
    let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let _ = writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.trim_end());
    let shown = |inner: &&mut Command| !inner.is_hide_set() && inner.get_name() != "help";
    command.get_subcommands_mut().filter(shown).for_each(|inner| describe(inner, page));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_page_of_commands_has_the_help_of_each() {
        let page = page(Arguments::command());
        for name in ["pausebed", "pausebed run", "pausebed set link", "pausebed man"] {
            assert!(page.contains(&format!("\n## {name}\n\n```text\n")), "{name}");
        }
        assert!(page.contains("Usage: pausebed man"), "{page}");
    }
}
