//! `pausebed wireshark install`: teaches Wireshark this project's frames and to check CRCs, and shows it
//! the ports of labs that are up.

use super::Exit;
use launch::programs;
use serve::wireshark::{
    FILE, LINK, Present, SCRIPT, extcap_folder_of, folder_of, present, present_link,
    usual_extcap_folder, usual_folder,
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Options of `wireshark`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// What to do with the dissector, and with the link that makes ports of labs interfaces.
    #[arg(value_enum)]
    action: Action,
    /// Wireshark's plugin folder, for the dissector; without it the one that tshark names, or the usual one.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Wireshark's folder of capture programs, for the link; without it the usual one, or none if --dir is
    /// given.
    #[arg(long, value_name = "FOLDER")]
    extcap_dir: Option<PathBuf>,
}

/// What can be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Put both where Wireshark looks.
    Install,
    /// Say where that is.
    Path,
    /// Write the dissector to standard output.
    Print,
    /// Take both away again.
    Uninstall,
}

/// Where dissector and link belong.
struct Places {
    dissector: PathBuf,
    link: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    if options.action == Action::Print {
        print!("{SCRIPT}");
        return Exit::Good;
    }
    let Some(places) = places(options) else {
        eprintln!("neither tshark nor HOME says where Wireshark's plugins are: name it by --dir");
        return Exit::Host;
    };
    let done = |file: &Path, result: std::io::Result<Exit>| {
        result.unwrap_or_else(|error| {
            eprintln!("{}: {error}", file.display());
            Exit::Host
        })
    };
    let act = |file: &Path, install: fn(&Path) -> _, uninstall: fn(&Path) -> _| match options.action
    {
        Action::Install => done(file, install(file)),
        Action::Uninstall => done(file, uninstall(file)),
        Action::Path | Action::Print => {
            println!("{}", file.display());
            Exit::Good
        }
    };
    let dissector = act(&places.dissector, install, uninstall);
    let link = places.link.as_deref().map(|link| act(link, install_link, uninstall_link));
    dissector.max(link.unwrap_or(Exit::Good))
}

/// Where Wireshark looks for what a user has, or where the user says.
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
    eprintln!("Ports of labs are interfaces of Wireshark from now on. Try: tshark -D");
    Ok(Exit::Good)
}

fn uninstall(file: &Path) -> std::io::Result<Exit> {
    take_away(file, present(file)?)
}

fn uninstall_link(link: &Path) -> std::io::Result<Exit> {
    take_away(link, present_link(link, &std::env::current_exe()?)?)
}

fn take_away(file: &Path, there: Present) -> std::io::Result<Exit> {
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
    eprintln!("{}: somebody else wrote this file, so it stays as it is", file.display());
    eprintln!("move it away, or name another folder by --dir");
    Exit::Usage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(action: Action, folder: &Path) -> Exit {
        run(&Options { action, dir: Some(folder.to_owned()), extcap_dir: None })
    }

    #[test]
    fn the_link_leads_to_this_program_and_what_others_put_there_stays() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let dir = Some(home.path().join("plugins"));
        let extcap_dir = Some(home.path().join("extcap"));
        let act =
            |action| run(&Options { action, dir: dir.clone(), extcap_dir: extcap_dir.clone() });
        let link = home.path().join("extcap").join(LINK);
        let own = std::env::current_exe().expect("it has a path");
        for _ in 0..2 {
            assert_eq!(act(Action::Install), Exit::Good);
            assert_eq!(std::fs::read_link(&link).ok().as_deref(), Some(own.as_path()));
        }
        std::fs::remove_file(&link).expect("it is ours");
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
