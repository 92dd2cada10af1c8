//! Names that one process of a network namespace can hold at a time.
//!
//! A claim is an abstract address of a Unix socket: it belongs to a network namespace, and the kernel releases it when
//! its holder ends.

use socket2::{Domain, SockAddr, Socket, Type};
use std::io;

/// A name that this process holds; dropping it releases the name.
#[derive(Debug)]
pub struct Claim {
    _socket: Socket,
}

impl Claim {
    /// Claims `name`, which has at most 107 octets.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another process, or this one, holds it.
    pub fn take(name: &str) -> io::Result<Claim> {
        let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
        socket.bind(&SockAddr::unix(format!("\0{name}"))?)?;
        Ok(Claim { _socket: socket })
    }

    /// The rest of a claimed name that begins with `prefix`, if there is one.
    pub fn find(prefix: &str) -> Option<String> {
        let sockets = std::fs::read_to_string("/proc/self/net/unix").ok()?;
        let prefix = format!("@{prefix}");
        sockets.lines().find_map(|line| Some(line.split_once(&prefix)?.1.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_exclusive_visible_and_ends_with_its_holder() {
        let name = format!("pausebed/test/{}", std::process::id());
        let held = Claim::take(&name).expect("a free name");
        let label = Claim::take(&format!("{name}/first lab")).expect("a free name");
        assert_eq!(Claim::take(&name).expect_err("taken").kind(), io::ErrorKind::AddrInUse);
        assert_eq!(Claim::find(&format!("{name}/")).as_deref(), Some("first lab"));
        drop((held, label));
        assert!(Claim::take(&name).is_ok());
        assert_eq!(Claim::find(&format!("{name}/")), None);
    }
}
