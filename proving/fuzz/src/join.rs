//! Both ends of a connection by which a daemon joins its launcher: lines that are not messages are refused, only what is
//! signed configures, and nothing that comes by the network names a file or an interface.

use daemon::DaemonConfig;
use daemon::join::{AS_DAEMON, AS_LAUNCHER, FromJoining, ToJoining, join};
use daemon::protocol::{ToDaemon, ToLauncher, next_line, read_line, write_line};
use daemon::token::Token;
use emulation::cable::Carrier;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

/// Octets of the longest line of this target.
const LINE_MAX: u64 = 600;
/// What the launcher of this target lets the daemon sign.
const CHALLENGE: &str = "0123456789abcdef";

static LISTENER: LazyLock<Mutex<TcpListener>> =
    LazyLock::new(|| Mutex::new(TcpListener::bind("127.0.0.1:0").expect("a port of loopback")));

/// Bit 0 of the first octet: the octets are not only read as lines, but sent to a daemon that joins. Bit 1: after a proper
/// challenge. Bit 2: as a configuration that is signed.
pub fn check(octets: &[u8]) {
    let Some((how, octets)) = octets.split_first() else { return };
    lines::<FromJoining>(octets);
    lines::<ToJoining>(octets);
    lines::<ToLauncher>(octets);
    lines::<ToDaemon>(octets);
    if how & 1 != 0 {
        joined(how & 2 != 0, how & 4 != 0, octets);
    }
}

fn lines<T: DeserializeOwned + Serialize>(mut octets: &[u8]) {
    let length = octets.len();
    let mut read = 0;
    while let Ok(Some(line)) = next_line(&mut octets, LINE_MAX) {
        assert!(line.len() as u64 <= LINE_MAX);
        read += line.len();
        if read_line::<T>(&line).is_ok() {
            crate::api::again::<T>(line.as_bytes());
        }
    }
    assert!(read <= length);
}

/// Lets a daemon join a launcher that has the token or not.
fn joined(is_challenged: bool, is_signed: bool, octets: &[u8]) {
    let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    let address = listener.local_addr().expect("it listens").to_string();
    let token = Token::new("00112233445566778899aabbccddeeff");
    let outcome = thread::scope(|scope| {
        let launcher = scope.spawn(|| {
            let (stream, _) = listener.accept()?;
            launch(stream, &token, is_challenged, is_signed, octets)
        });
        let outcome = join(&address, 3, &token, None).map(|(config, _, _)| config);
        // The daemon may go before it has read everything.
        let _ = launcher.join().expect("no panic");
        outcome
    });
    if let Ok(DaemonConfig { interfaces, socket_dir, capture, feed, carrier, .. }) = outcome {
        assert!(is_challenged && is_signed, "a configuration without a signature");
        assert!(interfaces.is_empty() && carrier == Carrier::Udp);
        assert!(socket_dir.is_none() && capture.is_none() && feed.is_none());
    }
}

fn launch(
    mut stream: TcpStream,
    token: &Token,
    is_challenged: bool,
    is_signed: bool,
    octets: &[u8],
) -> io::Result<()> {
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut reply = || -> io::Result<FromJoining> {
        let line = next_line(&mut replies, 4_096)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(read_line(&line).expect("a message of a daemon"))
    };
    let FromJoining::Join(join) = reply()? else { panic!("a daemon begins with a join") };
    assert_eq!(join.process, 3);
    if is_challenged {
        write_line(&mut stream, &ToJoining::Challenge(CHALLENGE.to_owned()))?;
        let FromJoining::Proof(proof) = reply()? else { panic!("an answer to the challenge") };
        assert!(token.has_signed(AS_DAEMON, &[&join.nonce, CHALLENGE], &proof));
    }
    if is_signed {
        let text = String::from_utf8_lossy(octets).into_owned();
        let proof = token.sign(AS_LAUNCHER, &[&join.nonce, CHALLENGE, &text]);
        write_line(&mut stream, &ToJoining::Configuration { text, proof })
    } else {
        stream.write_all(octets)
    }
}
