//! A sweep of 200 runs by real engines: Slurm with a controller and two nodes, and a Swarm of one node with two tasks. On the
//! way three tasks are killed. Slow; without an engine the tests are skipped.

use super::{Place, files, told};
use crate::laboratory::{alone, eventually, pause};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A sweep of 200 runs of the star, half a second each.
const WORDS: [&str; 7] = [
    "sweep",
    "star's.toml",
    "--set",
    "run.duration=400000 mtu",
    "--set",
    "traffic.all.load=0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.85,0.9",
    "--seeds=1..20",
];
/// The folder of the runs.
const OUT: &str = "all of them";
/// Tasks that are killed.
const KILLED: usize = 3;

/// The whole sweep on this machine alone must have given the same files.
fn assert_is_that_of_one_machine(place: &Place) {
    let one = told(&place.run(&[&WORDS[..], &["--out", "one"]].concat()));
    assert_eq!(one.0, Some(0), "{}", one.1);
    let mut merged = files(&place.path(OUT));
    merged.retain(|name, _| name.starts_with("sweep."));
    assert_eq!(merged, files(&place.path("one")));
    assert_eq!(super::runs(&place.path(OUT)), 200);
}

/// Kills a task as soon as the sweep has come further, three times.
fn kill_on_the_way(place: &Place, kill: impl Fn()) {
    for _ in 0..KILLED {
        let before = super::runs(&place.path(OUT));
        let goes_on = eventually(120.0, || super::runs(&place.path(OUT)) > before + 10);
        assert!(goes_on, "{before} runs, and no more in two minutes");
        kill();
    }
}

fn is_installed(program: &str) -> bool {
    let words = ["-c", "command -v \"$1\" >/dev/null", "sh", program];
    Command::new("sh").args(words).status().is_ok_and(|status| status.success())
}

/// The configuration of a controller and two nodes on loopback.
fn slurm_conf(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "ClusterName=test\n\
         SlurmctldHost=localhost\n\
         SlurmUser=root\n\
         SlurmdUser=root\n\
         AuthType=auth/munge\n\
         AuthInfo=socket={folder}/munge.socket\n\
         ProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\n\
         SelectType=select/linear\n\
         JobRequeue=1\n\
         ReturnToService=2\n\
         MailProg=/bin/true\n\
         SlurmctldPidFile={folder}/slurmctld.pid\n\
         SlurmdPidFile={folder}/slurmd-%n.pid\n\
         StateSaveLocation={folder}/state\n\
         SlurmdSpoolDir={folder}/spool-%n\n\
         NodeName=n1 NodeHostname=n1 NodeAddr=localhost Port=17001 CPUs=1\n\
         NodeName=n2 NodeHostname=n2 NodeAddr=localhost Port=17002 CPUs=1\n\
         PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n"
    )
}

/// Starts MUNGE, the controller and two nodes with host names of their own, in namespaces of processes and of the network;
/// then runs what `run` holds.
const CLUSTER: &str = r#"
set -e
mount -t proc proc /proc
ip link set lo up
# Slurm resolves names only on a host with an address other than loopback.
ip link add here type veth peer name there
ip address add 198.18.0.1/24 dev here
ip link set here up
mkdir -p state
munged --foreground --force --key-file="$PWD/munge.key" --socket="$PWD/munge.socket" --pid-file="$PWD/munged.pid" \
  --log-file="$PWD/munged.log" --seed-file="$PWD/munged.seed" >munged.out 2>&1 &
slurmctld -D -f "$SLURM_CONF" >slurmctld.log 2>&1 &
for node in n1 n2; do
  unshare --uts sh -c "hostname $node; exec slurmd -D -f '$SLURM_CONF' -N $node" >"slurmd-$node.log" 2>&1 &
done
exec sh ./run
"#;

/// Hands the job in, and lives on to be told what to kill.
const RUN: &str = r#"
until sinfo -h -t idle -o %D 2>/dev/null | grep -q 2; do sleep 0.2; done
sh ./job
while read -r line; do
  for task in $(squeue -h -t RUNNING -o %i -r | head -1); do scontrol requeue "$task"; done
done <kills &
until [ -z "$(squeue -h -o %i)" ]; do sleep 0.5; done
"#;

fn start_cluster(place: &Place) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CLUSTER]);
    command.current_dir(place.path("")).env("SLURM_CONF", place.path("slurm.conf"));
    let log = fs::File::create(place.path("cluster.log")).expect("a file");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
    command.spawn().expect("unshare is there")
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn slurm_makes_the_sweep_of_one_machine() {
    let missing: Vec<&str> = ["munged", "slurmctld", "slurmd", "sbatch"]
        .into_iter()
        .filter(|name| !is_installed(name))
        .collect();
    if !missing.is_empty() {
        return skip::because!("not installed: {}", missing.join(", "));
    }
    let _alone = alone();
    let place = Place::new();
    let job = place.run(&[&WORDS[..], &["--out", OUT, "--to", "slurm", "--shards", "10"]].concat());
    fs::write(place.path("job"), &job.stdout).expect("a file");
    fs::write(place.path("run"), RUN).expect("a file");
    fs::write(place.path("munge.key"), [7_u8; 1024]).expect("a file");
    fs::write(place.path("slurm.conf"), slurm_conf(&place.path(""))).expect("a file");
    let made = Command::new("sh")
        .args(["-c", "chmod 400 munge.key; mkfifo kills"])
        .current_dir(place.path(""))
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let mut cluster = start_cluster(&place);
    let kills =
        fs::File::options().read(true).write(true).open(place.path("kills")).expect("a FIFO");
    kill_on_the_way(&place, || {
        use std::io::Write;
        (&kills).write_all(b"kill\n").expect("room");
    });
    let ended = eventually(600.0, || cluster.try_wait().is_ok_and(|ended| ended.is_some()));
    if !ended {
        cluster.kill().expect("a child of the test");
    }
    let status = cluster.wait().expect("a child of the test");
    let log = fs::read_to_string(place.path("cluster.log")).unwrap_or_default();
    assert!(ended && status.success(), "{log}");
    assert_eq!(log.matches("requeue").count(), 0, "{log}");
    assert_is_that_of_one_machine(&place);
}

/// Standard output of `docker`, or its standard error if it fails.
fn docker(words: &[&str]) -> Result<String, String> {
    let output = Command::new("docker").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// A swarm of this engine alone, which ends with this value.
struct Swarm;

impl Swarm {
    fn start() -> Swarm {
        let bridge = ["network", "create", "--driver", "bridge", "--subnet", "198.19.251.0/24"];
        docker(&[&bridge[..], &["docker_gwbridge"]].concat()).expect("a bridge");
        let pool =
            ["--default-addr-pool", "198.19.252.0/22", "--default-addr-pool-mask-length", "24"];
        let init = ["swarm", "init", "--advertise-addr", "127.0.0.1"];
        docker(&[&init[..], &pool].concat()).expect("a swarm of one");
        Swarm
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        let removed = docker(&["stack", "rm", "shards"]);
        let left = docker(&["swarm", "leave", "--force"]);
        // The engine removes tasks and networks of a swarm asynchronously.
        let gone = eventually(60.0, || docker(&["network", "rm", "docker_gwbridge"]).is_ok());
        println!("removed: {removed:?} {left:?} {gone}");
    }
}

#[test]
#[ignore = "slow: run with ./test.sh --slow"]
fn a_swarm_makes_the_sweep_of_one_machine() {
    let image = format!("pausebed:{}", env!("CARGO_PKG_VERSION"));
    if let Err(reason) = docker(&["image", "inspect", &image]) {
        return skip::because!(
            "no Docker engine or no image (docker/build.sh builds it): {reason}"
        );
    }
    let inactive = docker(&["info", "--format", "{{.Swarm.LocalNodeState}}"]);
    if inactive.as_deref() != Ok("inactive") {
        return skip::because!("this engine is part of a swarm: {inactive:?}");
    }
    let _alone = alone();
    let place = Place::new();
    let volume = place.path("").display().to_string();
    let job = ["--out", OUT, "--to", "swarm", "--shards", "2", "--volume", &volume];
    let stack = place.run(&[&WORDS[..], &job].concat());
    fs::write(place.path("stack.json"), &stack.stdout).expect("a file");
    let _swarm = Swarm::start();
    let file = place.path("stack.json").display().to_string();
    docker(&["stack", "deploy", "--detach", "--compose-file", &file, "shards"]).expect("a stack");
    kill_on_the_way(&place, || {
        let label = "label=com.docker.swarm.service.name=shards_shards";
        let tasks = || docker(&["ps", "--quiet", "--filter", label]).expect("the engine answers");
        // A killed task comes again after five seconds.
        assert!(eventually(30.0, || !tasks().is_empty()), "no task runs");
        docker(&["kill", tasks().lines().next().expect("one")]).expect("it runs");
    });
    let merged = eventually(600.0, || {
        pause(1.0);
        place.path(OUT).join("sweep.svg").is_file()
    });
    let said = docker(&["service", "logs", "--raw", "shards_merge"]);
    assert!(merged, "{said:?} {:?}", docker(&["service", "ps", "--no-trunc", "shards_shards"]));
    assert_is_that_of_one_machine(&place);
}
