//! `pausebed schemes [NAME…]`: congestion control schemes, memory models and routing policies with their parameters.

use super::Exit;
use crate::completion;
use proto::congestion::schemes::{Scheme, all, find};
use scenario::parameters;
use serde_json::{Value, json};

/// Options of `schemes`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Schemes to print; all, memory models and routing policies included, if left out.
    #[arg(value_name = "NAME", add = completion::schemes())]
    names: Vec<String>,
    /// Print one JSON document instead of tables.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(options: &Options) -> Exit {
    let named: Option<Vec<&Scheme>> = options.names.iter().map(|name| find(name)).collect();
    let Some(named) = named else {
        let known = all().iter().map(|scheme| scheme.name).collect::<Vec<_>>().join(", ");
        eprintln!("there is no such scheme: one of {known}");
        return Exit::Usage;
    };
    let schemes = if named.is_empty() { all() } else { &named };
    if options.json {
        println!("{:#}", Value::Array(schemes.iter().map(|scheme| described(scheme)).collect()));
    } else if options.names.is_empty() {
        print!("{}", parameters::document());
    } else {
        schemes.iter().for_each(|scheme| println!("{}", parameters::scheme(scheme)));
    }
    Exit::Good
}

fn described(scheme: &Scheme) -> Value {
    let key = |key: &&proto::params::Key| {
        json!({
            "key": key.name,
            "holds": key.kind.expected(),
            "default": key.default_in_words(scheme.keys),
            "needs": key.when.map(|when| when.to_string()),
            "about": key.about,
            "source": key.source,
        })
    };
    json!({
        "name": scheme.name,
        "about": scheme.about,
        "source": scheme.source,
        "technologies": scheme.technologies,
        "keys": scheme.keys.iter().copied().flatten().map(|k| key(&k)).collect::<Vec<_>>(),
    })
}
