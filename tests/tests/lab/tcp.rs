//! The admin API over TCP: it requires the lab's token and is reachable only in the lab's network namespace.

use super::laboratory::eventually;
use super::{INFINIBAND, Place};
use emulation::cable::namespace::{Namespace, within};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// The HTTP status of a response to `GET /status`.
fn request(address: SocketAddr, token: Option<&str>) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    write!(stream, "GET /status HTTP/1.1\r\nHost: {address}\r\n{token}\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other(answer))
}

/// The TCP addresses of the admin API of a lab's daemons.
fn addresses(place: &Place, lab: &str) -> Vec<SocketAddr> {
    let status = place.json(&["status", "--json"]);
    let processes = status[lab]["processes"].as_array().expect("a list").iter();
    let addresses = processes.filter_map(|process| process["address"].as_str());
    addresses.map(|address| address.parse().expect("an address")).collect()
}

#[test]
fn the_tcp_api_requires_the_token_and_is_confined_to_its_namespace() {
    let place = Place::new();
    place.up(INFINIBAND, "shut");
    assert_eq!(addresses(&place, "shut"), []);
    assert!(!place.labs().join("shut/token").exists());
    place.good(&["down"]);
    place.up_with(INFINIBAND, "open", &["--tcp"]);
    place.up_with(INFINIBAND, "other", &["--tcp"]);
    let token_of = |lab: &str| {
        let file = place.labs().join(lab).join("token");
        assert_eq!(fs::metadata(&file).expect("a token").mode() & 0o777, 0o600);
        fs::read_to_string(file).expect("a token").trim().to_owned()
    };
    let (token, foreign) = (token_of("open"), token_of("other"));
    let addresses = addresses(&place, "open");
    assert_eq!(addresses.len(), 2, "one address for each daemon");
    for address in &addresses {
        let status = |token| request(*address, token).expect("an answer");
        // A late worker answers with another status at first.
        assert!(eventually(10.0, || status(Some(&token)) == 200));
        assert_eq!((status(None), status(Some(&foreign))), (401, 401));
    }
    elsewhere(addresses[0], &token);
    place.good(&["down", "--all"]);
    assert!(request(addresses[0], Some(&token)).is_err(), "a stopped lab does not listen");
    place.assert_empty();
}

/// Asserts that connections from another network namespace are refused, with and without the token.
fn elsewhere(address: SocketAddr, token: &str) {
    let namespace = match Namespace::make(1) {
        Ok(mut made) => made.pop().expect("one"),
        Err(error) => {
            skip::because!("network namespaces require CAP_SYS_ADMIN: {error}");
            return;
        }
    };
    namespace
        .interfaces
        .switch_on("lo", "loopback of a test")
        .expect("every namespace has a loopback interface");
    let path = PathBuf::from(format!("/proc/self/fd/{}", namespace.descriptor()));
    let there = within(Some(&path), || {
        // A listener in that namespace is reachable, so the connections below fail because no daemon listens.
        let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        TcpStream::connect(own.local_addr()?)?;
        Ok([None, Some(token)].map(|token| request(address, token).map_err(|error| error.kind())))
    });
    let there = there.expect("the namespace can be entered");
    assert_eq!(there, [Err(io::ErrorKind::ConnectionRefused); 2]);
}
