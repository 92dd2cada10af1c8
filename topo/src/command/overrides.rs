//! Options that stand for keys of the file: the same words in every command that runs one.

/// What a command line says instead of the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Overrides {
    /// Override a key of the file, as in scheme.ccti_increase=20; may be given again.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Wall time over fabric time, instead of the file's: a number or auto.
    #[arg(long, value_name = "FACTOR")]
    dilate: Option<String>,
}

impl Overrides {
    /// As keys and values, with the backend if one was named.
    pub fn keys(&self, backend: Option<&str>) -> Vec<String> {
        let mut keys = self.sets.clone();
        keys.extend(backend.map(|backend| format!("run.backend={backend:?}")));
        keys.extend(self.dilate.as_ref().map(|dilate| match dilate.parse::<f64>() {
            Ok(_) => format!("run.dilate={dilate}"),
            Err(_) => format!("run.dilate={dilate:?}"),
        }));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_numbers_are_not() {
        let with = |dilate: &str| Overrides {
            sets: vec!["run.seed=3".to_owned()],
            dilate: Some(dilate.to_owned()),
        };
        assert_eq!(with("auto").keys(None), ["run.seed=3", "run.dilate=\"auto\""]);
        let all = ["run.seed=3", "run.backend=\"udp\"", "run.dilate=1e3"];
        assert_eq!(with("1e3").keys(Some("udp")), all);
    }
}
