//! `pausebed wireshark install`: installs the dissector of this project's frames and CRCs, and makes ports of
//! running labs interfaces of Wireshark.

use crate::exit::{Exit, Failure, Outcome};
use launch::programs;
use serve::wireshark::{
    FILE, LINK, Present, SCRIPT, extcap_folder_of, folder_of, present, present_link,
    usual_extcap_folder, usual_folder,
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Options of `wireshark`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The action on the dissector, and on the link that makes ports of labs interfaces.
    #[arg(value_enum)]
    action: Action,
    /// Wireshark's plugin folder, for the dissector (default: from tshark, or the usual one).
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Wireshark's extcap folder, for the link (default: the usual one, or none with --dir).
    #[arg(long, value_name = "FOLDER")]
    extcap_dir: Option<PathBuf>,
}

/// The actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Action {
    /// Install both.
    Install,
    /// Print the paths of both.
    Path,
    /// Write the dissector to standard output.
    Print,
    /// Remove both.
    Uninstall,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    if options.action == Action::Print {
        print!("{SCRIPT}");
        return Ok(Exit::Good);
    }
    let (dissector, link) = places(options).ok_or_else(|| {
        Failure::host("neither tshark nor HOME gives the folder of Wireshark's plugins: use --dir")
    })?;
    let finish = |file: &Path, result: io::Result<Exit>| {
        result.unwrap_or_else(|error| {
            eprintln!("{}: {error}", file.display());
            Exit::Host
        })
    };
    let exit = finish(&dissector, act(options.action, &dissector, present, install));
    Ok(link.map_or(exit, |link| {
        let present = |link: &Path| present_link(link, &std::env::current_exe()?);
        exit.max(finish(&link, act(options.action, &link, present, install_link)))
    }))
}

/// The paths of dissector and link, from the options, from tshark, or from HOME.
fn places(options: &Options) -> Option<(PathBuf, Option<PathBuf>)> {
    let listing = programs::run("tshark", &["-G", "folders"].map(OsStr::new));
    let listing = listing.ok().filter(|(good, _)| *good).map(|(_, text)| text).unwrap_or_default();
    let at_home = |usual: fn(&Path) -> PathBuf| std::env::home_dir().map(|home| usual(&home));
    let plugins = || folder_of(&listing).or_else(|| at_home(usual_folder));
    let programs = || extcap_folder_of(&listing).or_else(|| at_home(usual_extcap_folder));
    let link = match (&options.extcap_dir, &options.dir) {
        (None, None) => programs(),
        (named, _) => named.clone(),
    };
    let dissector = options.dir.clone().or_else(plugins)?.join(FILE);
    Some((dissector, link.map(|folder| folder.join(LINK))))
}

/// Installs or removes `file`, or prints its path. `present` finds what is there; `install` writes the file in place
/// of that and returns a message for the user.
fn act(
    action: Action,
    file: &Path,
    present: impl Fn(&Path) -> io::Result<Present>,
    install: fn(&Path, Present) -> io::Result<String>,
) -> io::Result<Exit> {
    if action == Action::Path {
        println!("{}", file.display());
        return Ok(Exit::Good);
    }
    let message = match (action, present(file)?) {
        (_, Present::Foreign) => {
            eprintln!("{}: another program wrote this file, so it is not changed", file.display());
            eprintln!("move it away, or choose another folder with --dir");
            return Ok(Exit::Usage);
        }
        (Action::Install, before) => {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            install(file, before)?
        }
        (_, Present::Nothing) => {
            eprintln!("{} is not there", file.display());
            return Ok(Exit::Good);
        }
        _ => {
            fs::remove_file(file)?;
            "It is removed.".to_owned()
        }
    };
    println!("{}", file.display());
    eprintln!("{message}");
    Ok(Exit::Good)
}

fn install(file: &Path, before: Present) -> io::Result<String> {
    fs::write(file, SCRIPT)?;
    let what = match before {
        Present::Same => "was installed already",
        Present::Other => "replaces another version",
        Present::Nothing | Present::Foreign => "is installed",
    };
    Ok(format!(
        "The dissector {what}. tshark uses it from now on; in Wireshark reload it with\n\
         Analyze > Reload Lua Plugins. Try: tshark -r FILE -Y 'pausebed.check.icrc.status == 0'"
    ))
}

fn install_link(link: &Path, before: Present) -> io::Result<String> {
    if before == Present::Other {
        fs::remove_file(link)?;
    }
    if before != Present::Same {
        std::os::unix::fs::symlink(std::env::current_exe()?, link)?;
    }
    Ok("Ports of running labs are now interfaces of Wireshark. Try: tshark -D".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(action: Action, folder: &Path) -> Exit {
        let options = Options { action, dir: Some(folder.to_owned()), extcap_dir: None };
        run(&options).expect("the folder is named")
    }

    #[test]
    fn the_link_leads_to_this_program_and_foreign_files_stay() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let dir = Some(home.path().join("plugins"));
        let extcap_dir = Some(home.path().join("extcap"));
        let act = |action| {
            let options = Options { action, dir: dir.clone(), extcap_dir: extcap_dir.clone() };
            run(&options).expect("the folders are named")
        };
        let link = home.path().join("extcap").join(LINK);
        let own = std::env::current_exe().expect("it has a path");
        for _ in 0..2 {
            assert_eq!(act(Action::Install), Exit::Good);
            assert_eq!(std::fs::read_link(&link).ok().as_deref(), Some(own.as_path()));
        }
        std::fs::remove_file(&link).expect("this test made it");
        std::os::unix::fs::symlink("/nowhere/pausebed", &link).expect("a link");
        assert_eq!(act(Action::Install), Exit::Good);
        assert_eq!(std::fs::read_link(&link).ok(), Some(own));
        assert_eq!((act(Action::Uninstall), link.is_symlink()), (Exit::Good, false));
        std::fs::write(&link, "mine").expect("a file");
        for action in [Action::Install, Action::Uninstall] {
            assert_eq!(act(action), Exit::Usage);
            assert_eq!(std::fs::read_to_string(&link).ok().as_deref(), Some("mine"));
        }
    }

    #[test]
    fn it_can_be_installed_twice_and_removed_twice() {
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
    fn foreign_files_stay() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(FILE);
        std::fs::write(&file, "-- mine").expect("a file");
        for action in [Action::Install, Action::Uninstall] {
            assert_eq!(act(action, folder.path()), Exit::Usage);
            assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some("-- mine"));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_failure_of_the_host() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        assert_eq!(act(Action::Install, &file), Exit::Host);
    }
}
