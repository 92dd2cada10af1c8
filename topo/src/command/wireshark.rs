//! `pausebed wireshark install`: teaches Wireshark this project's frames, and to check CRCs.

use super::Exit;
use crate::launch::programs;
use crate::wireshark::{FILE, Present, SCRIPT, folder_of, present, usual_folder};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Options of `wireshark`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// What to do with the dissector.
    #[arg(value_enum)]
    action: Action,
    /// Wireshark's plugin folder; without it the one that tshark names, or the usual one.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// What can be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Put it where Wireshark looks.
    Install,
    /// Say where that is.
    Path,
    /// Write it to standard output.
    Print,
    /// Take it away again.
    Uninstall,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    if options.action == Action::Print {
        print!("{SCRIPT}");
        return Exit::Good;
    }
    let Some(folder) = options.dir.clone().or_else(folder) else {
        eprintln!("neither tshark nor HOME says where Wireshark's plugins are: name it by --dir");
        return Exit::Host;
    };
    let file = folder.join(FILE);
    let done = match options.action {
        Action::Install => install(&folder, &file),
        Action::Uninstall => uninstall(&file),
        Action::Path | Action::Print => {
            println!("{}", file.display());
            Ok(Exit::Good)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("{}: {error}", file.display());
        Exit::Host
    })
}

/// Where Wireshark looks for a user's scripts.
fn folder() -> Option<PathBuf> {
    let listing = programs::run("tshark", &["-G", "folders"].map(OsStr::new));
    let named = listing.ok().filter(|(good, _)| *good).and_then(|(_, text)| folder_of(&text));
    named.or_else(|| std::env::home_dir().map(|home| usual_folder(&home)))
}

fn install(folder: &Path, file: &Path) -> std::io::Result<Exit> {
    let before = present(file)?;
    if before == Present::Foreign {
        return Ok(refuse(file));
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(file, SCRIPT)?;
    println!("{}", file.display());
    let what = match before {
        Present::Same => "was there already",
        Present::Other => "replaces what another version wrote there",
        Present::Nothing | Present::Foreign => "is installed",
    };
    eprintln!("The dissector {what}. tshark takes it from now on; in Wireshark reload it by");
    eprintln!(
        "Analyze > Reload Lua Plugins. Try: tshark -r FILE -Y 'pausebed.check.icrc.status == 0'"
    );
    Ok(Exit::Good)
}

fn uninstall(file: &Path) -> std::io::Result<Exit> {
    match present(file)? {
        Present::Foreign => return Ok(refuse(file)),
        Present::Nothing => eprintln!("{} is not there", file.display()),
        Present::Same | Present::Other => {
            std::fs::remove_file(file)?;
            println!("{}", file.display());
            eprintln!("The dissector is removed.");
        }
    }
    Ok(Exit::Good)
}

fn refuse(file: &Path) -> Exit {
    eprintln!("{}: somebody else wrote this file, so it stays as it is", file.display());
    eprintln!("move it away, or name another folder by --dir");
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(action: Action, folder: &Path) -> Exit {
        run(&Options { action, dir: Some(folder.to_owned()) })
    }

    #[test]
    fn it_is_installed_twice_and_taken_away_twice() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let folder = usual_folder(home.path());
        let file = folder.join(FILE);
        for _ in 0..2 {
            assert_eq!(act(Action::Install, &folder), Exit::Good);
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some(SCRIPT));
        }
        std::fs::write(&file, format!("{SCRIPT}-- of another version")).expect("a file");
        assert_eq!(act(Action::Install, &folder), Exit::Good);
        assert_eq!(present(&file).ok(), Some(Present::Same));
        for _ in 0..2 {
            assert_eq!(act(Action::Uninstall, &folder), Exit::Good);
            assert_eq!(present(&file).ok(), Some(Present::Nothing));
        }
    }

    #[test]
    fn what_somebody_else_wrote_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(FILE);
        std::fs::write(&file, "-- mine").expect("a file");
        for action in [Action::Install, Action::Uninstall] {
            assert_eq!(act(action, folder.path()), Exit::Usage);
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some("-- mine"));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_is_the_hosts_fault() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        assert_eq!(act(Action::Install, &file), Exit::Host);
    }
}
