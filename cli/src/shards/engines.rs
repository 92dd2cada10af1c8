//! Jobs of engines that start the shares of a plan: an array of Slurm, an indexed job of Kubernetes, a replicated job of
//! Swarm. Each calls `--shard` with the engine's own index, and merges when all are there.

use nix::unistd::{getegid, geteuid};
use serde_json::{Value, json};

/// The engines.
pub const ENGINES: [&str; 3] = ["slurm", "kubernetes", "swarm"];
/// The working directory in containers.
const WORK: &str = "/work";
/// How long a merge in a container waits for the shards, in seconds: a week.
const WAIT: &str = "604800";
/// Options with a value that belong to the job, not to its shards.
const OWN: [&str; 4] = ["--to", "--shards", "--image", "--volume"];

/// What an engine is to start.
pub struct Job<'a> {
    /// The name of the sweep, suite or search.
    pub name: &'a str,
    /// The command line of a shard, the program first.
    pub words: Vec<String>,
    /// The folder of the runs.
    pub out: String,
    /// Number of shares.
    pub shards: u64,
    /// The image.
    pub image: &'a str,
    /// The storage that all shards share.
    pub volume: &'a str,
}

/// A command line without the options of a job.
pub fn words(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut words = Vec::new();
    let mut is_value = false;
    for word in all {
        let is_own = OWN.iter().any(|own| {
            word.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        });
        if !std::mem::replace(&mut is_value, is_own && !word.contains('=')) && !is_own {
            words.push(word);
        }
    }
    words
}

impl Job<'_> {
    /// The job for `engine`.
    ///
    /// # Errors
    /// If a name or word has control characters.
    pub fn for_engine(&self, engine: &str) -> Result<String, String> {
        let all = self.words.iter().map(String::as_str).chain([
            self.name,
            &self.out,
            self.image,
            self.volume,
        ]);
        let mut bad = all.filter(|text| text.chars().any(char::is_control));
        if let Some(text) = bad.next() {
            return Err(format!("{text:?} has control characters, which no job can hold"));
        }
        Ok(match engine {
            "slurm" => self.slurm(),
            "kubernetes" => format!("{:#}", self.kubernetes()),
            _ => format!("{:#}", self.swarm()),
        })
    }

    fn merge(&self) -> Vec<String> {
        let more = ["--merge", &self.out].map(str::to_owned);
        self.words.iter().cloned().chain(more).collect()
    }

    /// The words of a container, without the program, which its image names; `escaped` makes them literal.
    fn arguments(&self, words: &[String], escaped: impl Fn(&str) -> String) -> Vec<String> {
        words.iter().skip(1).map(|word| escaped(word)).collect()
    }

    fn waiting_merge(&self) -> Vec<String> {
        self.merge().into_iter().chain(["--wait", WAIT].map(str::to_owned)).collect()
    }

    /// A name of letters, digits and hyphens, which every engine takes.
    fn label(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.name.chars().map(plain).take(40).collect();
        format!("pausebed-{}", name.trim_matches('-')).trim_end_matches('-').to_owned()
    }

    /// A script for a shell, which hands in both jobs.
    fn slurm(&self) -> String {
        let line =
            |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let (label, shards, last) = (self.label(), self.shards, self.shards - 1);
        let (shard, merge) = (line(&self.words), line(&self.merge()));
        format!(
            "#!/bin/sh\n\
             # An array of Slurm that makes the runs, and the job that merges them. Hand it to sh in a folder that all nodes share.\n\
             set -e\n\
             array=$(sbatch --parsable --requeue --job-name={label} --array=0-{last} <<'END OF JOB'\n\
             #!/bin/sh\n\
             export PAUSEBED_SHARD=\"$SLURM_ARRAY_TASK_ID/{shards}\"\n\
             exec {shard}\n\
             END OF JOB\n\
             )\n\
             sbatch --dependency=\"afterany:$array\" --job-name={label}-merge <<'END OF JOB'\n\
             #!/bin/sh\n\
             exec {merge}\n\
             END OF JOB"
        )
    }

    /// A list of two jobs, as JSON, which is YAML: `kubectl create -f -` takes it.
    fn kubernetes(&self) -> Value {
        let storage = match self.volume.starts_with('/') {
            true => json!({ "name": "work", "hostPath": { "path": self.volume } }),
            false => {
                json!({ "name": "work", "persistentVolumeClaim": { "claimName": self.volume } })
            }
        };
        // The kubelet replaces $(NAME) in arguments, and $$ by $.
        let escaped = |word: &str| word.replace('$', "$$");
        let pod = |words: &[String], env: Value| {
            json!({ "spec": {
                "restartPolicy": "OnFailure",
                "containers": [{
                    "name": "pausebed", "image": self.image, "workingDir": WORK,
                    "args": self.arguments(words, escaped), "env": env,
                    "volumeMounts": [
                        { "name": "work", "mountPath": WORK }, { "name": "tmp", "mountPath": "/tmp" },
                    ],
                }],
                "volumes": [storage.clone(), { "name": "tmp", "emptyDir": {} }],
            }})
        };
        let index = "metadata.annotations['batch.kubernetes.io/job-completion-index']";
        let env = json!([
            { "name": "INDEX", "valueFrom": { "fieldRef": { "fieldPath": index } } },
            { "name": "PAUSEBED_SHARD", "value": format!("$(INDEX)/{}", self.shards) },
        ]);
        let job = |name: String, spec: Value| json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name }, "spec": spec });
        let shards = json!({
            "completionMode": "Indexed", "completions": self.shards, "parallelism": self.shards,
            "template": pod(&self.words, env),
        });
        let merge = json!({ "template": pod(&self.waiting_merge(), json!([])) });
        let label = self.label();
        json!({
            "apiVersion": "v1", "kind": "List",
            "items": [job(label.clone(), shards), job(format!("{label}-merge"), merge)],
        })
    }

    /// A stack file, as JSON, which is YAML: `docker stack deploy --compose-file - NAME` takes it.
    fn swarm(&self) -> Value {
        // Compose replaces $NAME, and $$ by $.
        let escaped = |word: &str| word.replace('$', "$$");
        let is_path = self.volume.starts_with('/');
        let mount = json!({
            "type": if is_path { "bind" } else { "volume" },
            "source": if is_path { self.volume } else { "work" }, "target": WORK,
        });
        // The folder of the runs belongs to the user that prints the job.
        let user = format!("{}:{}", geteuid(), getegid());
        let service = |words: &[String], environment: Value, replicas: u64| {
            json!({
                "image": self.image, "working_dir": WORK, "command": self.arguments(words, escaped),
                "environment": environment, "user": user,
                "volumes": [mount.clone(), { "type": "tmpfs", "target": "/tmp" }],
                "deploy": {
                    "mode": "replicated-job", "replicas": replicas,
                    "restart_policy": { "condition": "on-failure" },
                },
            })
        };
        // Slots of a replicated job count from 0, and the template has the node's name for 0.
        let slot = "{{if eq .Task.Slot .Node.ID}}0{{else}}{{.Task.Slot}}{{end}}";
        let slot = json!({ "PAUSEBED_SHARD": format!("{slot}/{}", self.shards) });
        let mut stack = json!({
            "version": "3.8",
            "services": {
                "shards": service(&self.words, slot, self.shards),
                "merge": service(&self.waiting_merge(), json!({}), 1),
            },
        });
        if !is_path {
            stack["volumes"] = json!({ "work": { "name": self.volume, "external": true } });
        }
        stack
    }
}

/// A word that a shell takes as it is.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:+,@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job<'a>(words: &[&str], name: &'a str) -> Job<'a> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Job {
            name,
            words,
            out: "it's $(out)".to_owned(),
            shards: 3,
            image: "pausebed:1",
            volume: "v",
        }
    }

    #[test]
    fn options_of_the_job_are_not_those_of_its_shards() {
        let all = "pausebed sweep a.toml --to slurm --set x=1,2 --shards=3 --image i --out d";
        let kept = words(all.split(' ').map(str::to_owned));
        assert_eq!(kept.join(" "), "pausebed sweep a.toml --set x=1,2 --out d");
    }

    #[test]
    fn a_shell_gets_the_words_of_a_hostile_name() {
        let quotes =
            ["a b", "it's", "$(reboot)", "", "a;b", "\\", "~", "a-b_=./:+,@%1"].map(quoted);
        let expected =
            ["'a b'", r"'it'\''s'", "'$(reboot)'", "''", "'a;b'", r"'\'", "'~'", "a-b_=./:+,@%1"];
        assert_eq!(quotes, expected);
        let script = job(&["pausebed", "sweep", "it's"], "a").for_engine("slurm").expect("good");
        assert!(
            script.contains(r"exec pausebed sweep 'it'\''s' --merge 'it'\''s $(out)'"),
            "{script}"
        );
    }

    #[test]
    fn containers_get_the_words_of_a_hostile_name() {
        let job = job(&["pausebed", "sweep", "$(INDEX) $HOME: {{x}}"], "Zürich, case 1 --");
        let list = job.kubernetes();
        let args = &list["items"][0]["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(args[1], "$$(INDEX) $$HOME: {{x}}");
        assert_eq!(list["items"][1]["metadata"]["name"], "pausebed-z-rich--case-1-merge");
        assert_eq!(job.swarm()["services"]["shards"]["command"][1], "$$(INDEX) $$HOME: {{x}}");
        let bad = Job { name: "a\nb", ..job };
        assert!(bad.for_engine("swarm").is_err_and(|error| error.contains("control characters")));
    }
}
