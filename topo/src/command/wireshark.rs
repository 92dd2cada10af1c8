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

/// The paths of dissector and link.
struct Places {
    dissector: PathBuf,
    link: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    if options.action == Action::Print {
        print!("{SCRIPT}");
        return Ok(Exit::Good);
    }
    let places = places(options).ok_or_else(|| {
        Failure::host("neither tshark nor HOME gives the folder of Wireshark's plugins: use --dir")
    })?;
    let act = |file: &Path, install: fn(&Path) -> _, uninstall: fn(&Path) -> _| {
        let result: std::io::Result<Exit> = match options.action {
            Action::Install => install(file),
            Action::Uninstall => uninstall(file),
            Action::Path | Action::Print => {
                println!("{}", file.display());
                Ok(Exit::Good)
            }
        };
        result.unwrap_or_else(|error| {
            eprintln!("{}: {error}", file.display());
            Exit::Host
        })
    };
    let dissector = act(&places.dissector, install, uninstall);
    let link = places.link.as_deref().map(|link| act(link, install_link, uninstall_link));
    Ok(dissector.max(link.unwrap_or(Exit::Good)))
}

/// The paths from the options, from tshark, or from HOME.
fn places(options: &Options) -> Option<Places> {
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
    Some(Places { dissector, link: link.map(|folder| folder.join(LINK)) })
}

fn make_folder_of(file: &Path) -> std::io::Result<()> {
    file.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn install(file: &Path) -> std::io::Result<Exit> {
    let before = present(file)?;
    if before == Present::Foreign {
        return Ok(refuse(file));
    }
    make_folder_of(file)?;
    std::fs::write(file, SCRIPT)?;
    println!("{}", file.display());
    let what = match before {
        Present::Same => "was installed already",
        Present::Other => "replaces another version",
        Present::Nothing | Present::Foreign => "is installed",
    };
    eprintln!("The dissector {what}. tshark uses it from now on; in Wireshark reload it with");
    eprintln!(
        "Analyze > Reload Lua Plugins. Try: tshark -r FILE -Y 'pausebed.check.icrc.status == 0'"
    );
    Ok(Exit::Good)
}

fn install_link(link: &Path) -> std::io::Result<Exit> {
    let program = std::env::current_exe()?;
    match present_link(link, &program)? {
        Present::Foreign => return Ok(refuse(link)),
        Present::Other => std::fs::remove_file(link)?,
        Present::Nothing | Present::Same => {}
    }
    make_folder_of(link)?;
    if !link.is_symlink() {
        std::os::unix::fs::symlink(program, link)?;
    }
    println!("{}", link.display());
    eprintln!("Ports of running labs are now interfaces of Wireshark. Try: tshark -D");
    Ok(Exit::Good)
}

fn uninstall(file: &Path) -> std::io::Result<Exit> {
    remove(file, present(file)?)
}

fn uninstall_link(link: &Path) -> std::io::Result<Exit> {
    remove(link, present_link(link, &std::env::current_exe()?)?)
}

fn remove(file: &Path, there: Present) -> std::io::Result<Exit> {
    match there {
        Present::Foreign => return Ok(refuse(file)),
        Present::Nothing => eprintln!("{} is not there", file.display()),
        Present::Same | Present::Other => {
            std::fs::remove_file(file)?;
            println!("{}", file.display());
            eprintln!("It is removed.");
        }
    }
    Ok(Exit::Good)
}

fn refuse(file: &Path) -> Exit {
    eprintln!("{}: another program wrote this file, so it is not changed", file.display());
    eprintln!("move it away, or choose another folder with --dir");
    Exit::Usage
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
