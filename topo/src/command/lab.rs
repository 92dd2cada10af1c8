//! Labs that stay: which lab a command is about, and the commands' common ways to fail.

use super::Exit;
use launch::LaunchError;
use launch::lab::client::ClientError;
use launch::lab::{Labs, Record};
use std::path::PathBuf;

pub mod capture;
pub mod change;
pub mod down;
pub mod logs;
pub mod show;
pub mod status;
pub mod up;

/// Where labs are.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// Where labs are, instead of this user's runtime folder [env: PAUSEBED_LABS]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Which lab.
#[derive(Clone, Debug, clap::Args)]
pub struct Choice {
    /// Which lab; needed where there are several
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Place {
    /// The labs there.
    ///
    /// # Errors
    /// [`Exit::Host`] with a word on standard error if they cannot be had.
    pub fn labs(&self) -> Result<Labs, Exit> {
        Labs::at(self.dir.as_deref()).map_err(|error| {
            eprintln!("no place for labs: {error}");
            Exit::Host
        })
    }
}

impl Choice {
    /// The lab that is meant, which must run.
    ///
    /// # Errors
    /// If there is none or it is not clear which, with a word on standard error.
    pub fn running(&self) -> Result<Record, Exit> {
        let labs = self.place.labs()?;
        let (name, record) = choose(&labs, self.lab.as_deref())?;
        if !record.is_alive() {
            eprintln!("lab {name} has ended: pausebed logs, and then pausebed down {name}");
            return Err(Exit::Died);
        }
        Ok(record)
    }
}

/// The lab called `name`, or the only one.
fn choose(labs: &Labs, name: Option<&str>) -> Result<(String, Record), Exit> {
    let mut all = labs.all();
    let refuse = |reason: String| {
        eprintln!("{reason}");
        Err(Exit::Usage)
    };
    match (name, all.len()) {
        (Some(name), _) => match all.remove(name) {
            Some(record) => Ok((name.to_owned(), record)),
            None => refuse(format!("no lab called {name}: pausebed status shows which there are")),
        },
        (None, 0) => refuse("no lab is up: pausebed up FILE".to_owned()),
        (None, 1) => Ok(all.pop_first().expect("there is one")),
        (None, _) => {
            let names: Vec<String> = all.into_keys().collect();
            refuse(format!("which lab? {}", names.join(", ")))
        }
    }
}

/// Says why a daemon was not asked in vain, and how the command ends.
fn failed(error: &ClientError) -> Exit {
    eprintln!("{error}");
    match error {
        ClientError::Refused(_) => Exit::Usage,
        ClientError::Silent(..) => Exit::Died,
    }
}

/// The same of a launch.
fn not_launched(error: &LaunchError) -> Exit {
    eprintln!("{error}");
    match error {
        LaunchError::Died(_) => Exit::Died,
        LaunchError::Host(_) => Exit::Host,
        LaunchError::Config(_) => Exit::Usage,
        LaunchError::Interrupted => Exit::Interrupted,
    }
}
