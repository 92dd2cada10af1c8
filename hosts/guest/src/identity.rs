//! What makes this machine differ from the others: name, addresses, time, random numbers.

use crate::boot::PATH;
use guest::protocol::Identity;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

const NS_PER_S: u64 = 1_000_000_000;
/// Most octets of the seed that are used.
const SEED: usize = 256;

nix::ioctl_write_ptr!(add_entropy, b'R', 0x03, [libc::c_int; 2]);
nix::ioctl_none!(reseed, b'R', 0x07);

/// Sets name, time, seed, eth0 and rxe0.
///
/// # Errors
/// The step that failed, with its reason.
pub fn apply(identity: &Identity) -> Result<(), String> {
    let step =
        |what: &str, result: io::Result<()>| result.map_err(|error| format!("{what}: {error}"));
    step("name", name(&identity.name))?;
    step("time", set_time(identity.time_ns))?;
    step("seed", seed(&identity.seed.0))?;
    step("IPv6", ipv6(identity.addresses.iter().any(|(address, _)| address.is_ipv6())))?;
    step("eth0", run("ip", &["-batch", "-"], &interface(identity)))?;
    step("rxe0", run("rdma", &["link", "add", "rxe0", "type", "rxe", "netdev", "eth0"], ""))
}

fn name(name: &str) -> io::Result<()> {
    nix::unistd::sethostname(name)?;
    fs::write("/etc/hostname", format!("{name}\n"))?;
    fs::write("/etc/hosts", format!("127.0.0.1 localhost {name}\n::1 localhost\n"))
}

fn set_time(time_ns: u64) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: (time_ns / NS_PER_S) as libc::time_t,
        tv_nsec: (time_ns % NS_PER_S) as libc::c_long,
    };
    // SAFETY: `time` outlives the call, which only reads it. Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    match unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// All machines start from one saved state, so their generators would give the same numbers.
fn seed(octets: &[u8]) -> io::Result<()> {
    /// `struct rand_pool_info` of linux/random.h.
    #[repr(C)]
    struct Pool {
        head: [libc::c_int; 2],
        octets: [u8; SEED],
    }
    let length = octets.len().min(SEED);
    let mut pool = Pool { head: [8 * length as i32, length as i32], octets: [0; SEED] };
    pool.octets[..length].copy_from_slice(&octets[..length]);
    let device = fs::File::options().write(true).open("/dev/urandom")?;
    // SAFETY: the kernel reads the head and the number of octets that it states, all within `pool`.
    // Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    unsafe { add_entropy(device.as_raw_fd(), (&raw const pool).cast()) }?;
    // SAFETY: the call has no argument. Test: two_machines_ping_each_other_by_ip_and_by_verbs.
    unsafe { reseed(device.as_raw_fd()) }?;
    Ok(())
}

/// Without an IPv6 address the interface sends no frame of its own accord.
fn ipv6(is_wanted: bool) -> io::Result<()> {
    let set =
        |key: &str, value: &str| fs::write(format!("/proc/sys/net/ipv6/conf/eth0/{key}"), value);
    if !is_wanted {
        return set("disable_ipv6", "1");
    }
    // The link-local address stays: neighbour solicitations for RDMA, which no packet has caused, come from it.
    for key in ["accept_ra", "autoconf", "router_solicitations", "accept_dad", "dad_transmits"] {
        set(key, "0")?;
    }
    Ok(())
}

/// Input of `ip -batch`. All of it is made from numbers.
fn interface(identity: &Identity) -> String {
    let mac = identity.mac.map(|octet| format!("{octet:02x}")).join(":");
    let mut batch = format!(
        "link set lo up\nlink set eth0 address {mac} mtu {} txqueuelen 1000\nlink set eth0 up\n",
        identity.mtu
    );
    for (address, prefix) in &identity.addresses {
        let nodad = if address.is_ipv6() { " nodad" } else { "" };
        batch.push_str(&format!("addr add {address}/{prefix} dev eth0{nodad}\n"));
    }
    batch
}

/// Runs a program with this input. Its output becomes the error.
fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", PATH);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use guest::protocol::Octets;

    #[test]
    fn the_interface_gets_every_address() {
        let identity = Identity {
            name: "v1".to_owned(),
            mac: [2, 0, 0, 0, 0, 0xab],
            addresses: vec![
                ("198.18.0.1".parse().unwrap(), 16),
                ("2001:db8::1".parse().unwrap(), 64),
            ],
            mtu: 1500,
            time_ns: 0,
            seed: Octets::default(),
        };
        let expected = "link set lo up\n\
            link set eth0 address 02:00:00:00:00:ab mtu 1500 txqueuelen 1000\n\
            link set eth0 up\n\
            addr add 198.18.0.1/16 dev eth0\n\
            addr add 2001:db8::1/64 dev eth0 nodad\n";
        assert_eq!(interface(&identity), expected);
    }
}
