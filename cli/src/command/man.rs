//! `pausebed man DIR`: manual pages of all commands.

use crate::exit::{Exit, Failure, Outcome};
use clap::Command;
use std::path::PathBuf;

/// Options of `man`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The folder for pausebed.1, pausebed-run.1 and so on.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes a page for `command` and for each of its commands.
pub(super) fn run(options: &Options, command: Command) -> Outcome {
    let folder = &options.folder;
    let written =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(Failure::cannot_write(folder))?;
    Ok(Exit::Good)
}

#[cfg(test)]
mod tests {
    use crate::command::Arguments;
    use clap::{Command, CommandFactory};
    use std::fmt::Write;
    use std::path::Path;

    /// The help of a command and of those below it.
    fn describe(command: &mut Command, page: &mut String) {
        let name = command.get_bin_name().unwrap_or("pausebed").to_owned();
        let help = command.render_long_help().to_string();
        let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        let _ = writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.trim_end());
        let shown = |inner: &&mut Command| !inner.is_hide_set() && inner.get_name() != "help";
        command.get_subcommands_mut().filter(shown).for_each(|inner| describe(inner, page));
    }

    /// `PAUSEBED_REWRITE_SNAPSHOTS=1 cargo test -p pausebed` rewrites the page.
    #[test]
    fn the_page_of_commands_is_made_from_their_help() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/commands.md");
        let mut command = Arguments::command().version("").term_width(100);
        command.build();
        let mut made = "# Commands\n\nThis page is made from `--help`.\n".to_owned();
        describe(&mut command, &mut made);
        if std::env::var_os("PAUSEBED_REWRITE_SNAPSHOTS").is_some() {
            std::fs::write(&file, &made).expect("the folder can be written");
        }
        let written = std::fs::read_to_string(&file).expect("docs/reference/commands.md");
        assert!(written == made, "set PAUSEBED_REWRITE_SNAPSHOTS=1 to rewrite {}", file.display());
    }
}
