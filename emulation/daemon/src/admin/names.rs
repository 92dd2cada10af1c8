//! The names by which a server may be called. A foreign page may resolve a name of its own to our address (DNS
//! rebinding); the browser then sends that name, and the request is refused.

use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderName};
use std::net::SocketAddr;

/// The names of one server.
#[derive(Clone, Debug)]
pub struct OwnNames {
    address: SocketAddr,
    further: Option<String>,
}

impl OwnNames {
    /// The names of the server at `address`: the address, `localhost` if it is a loopback address, and
    /// `further`, all with the server's port.
    pub const fn new(address: SocketAddr, further: Option<String>) -> OwnNames {
        OwnNames { address, further }
    }

    /// Whether a request calls the server by one of its names.
    pub fn are_in(&self, headers: &HeaderMap) -> bool {
        only(headers, HOST).is_some_and(|host| self.has(host))
    }

    fn has(&self, host: &str) -> bool {
        if let Ok(asked) = host.parse::<SocketAddr>() {
            let own = self.address.ip();
            // A server at all addresses accepts any address, since a page cannot choose the address that a name
            // resolves to here.
            let is_any = own.is_unspecified() && !asked.ip().is_multicast();
            return asked.port() == self.address.port() && (is_any || asked.ip() == own);
        }
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let is = |own: &str| own.eq_ignore_ascii_case(name);
        let is_local = is("localhost") && self.address.ip().is_loopback();
        port == self.address.port().to_string()
            && (is_local || self.further.as_deref().is_some_and(is))
    }
}

/// The value of a header that occurs exactly once.
pub(super) fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(own: &str, further: Option<&str>, host: &str) -> bool {
        let address = own.parse().expect("an address");
        OwnNames::new(address, further.map(str::to_owned)).has(host)
    }

    #[test]
    fn a_server_answers_to_its_address_and_to_what_it_is_called_and_to_nothing_else() {
        for (own, further, host) in [
            ("127.0.0.1:8086", None, "127.0.0.1:8086"),
            ("127.0.0.1:8086", None, "localhost:8086"),
            ("127.0.0.1:8086", None, "LocalHost:8086"),
            ("[::1]:9", None, "[::1]:9"),
            ("0.0.0.0:9", None, "198.18.0.1:9"),
            ("198.18.7.3:4701", Some("nicd-0"), "nicd-0:4701"),
            ("198.18.7.3:4701", Some("nicd-0"), "198.18.7.3:4701"),
        ] {
            assert!(has(own, further, host), "{host} at {own}");
        }
        for (own, further, host) in [
            ("127.0.0.1:8086", None, ""),
            ("127.0.0.1:8086", None, "127.0.0.1"),
            ("127.0.0.1:8086", None, "localhost"),
            ("127.0.0.1:8086", None, "evil.example:8086"),
            ("127.0.0.1:8086", None, "127.0.0.1:80"),
            ("127.0.0.1:8086", None, "[::1]:8086"),
            ("0.0.0.0:9", None, "evil.example:9"),
            ("0.0.0.0:9", None, "localhost:9"),
            ("0.0.0.0:9", None, "224.0.0.1:9"),
            ("198.18.7.3:4701", Some("nicd-0"), "nicd-0:4700"),
            ("198.18.7.3:4701", Some("nicd-0"), "nicd-0"),
            ("198.18.7.3:4701", Some("nicd-0"), "nicd-01:4701"),
            ("198.18.7.3:4701", Some("nicd-0"), "localhost:4701"),
        ] {
            assert!(!has(own, further, host), "{host} at {own}");
        }
    }

    #[test]
    fn a_request_with_two_names_has_none() {
        let own = OwnNames::new(SocketAddr::from(([127, 0, 0, 1], 9)), None);
        let mut headers = HeaderMap::new();
        assert!(!own.are_in(&headers));
        headers.append(HOST, "127.0.0.1:9".parse().expect("a value"));
        assert!(own.are_in(&headers));
        headers.append(HOST, "127.0.0.1:9".parse().expect("a value"));
        assert!(!own.are_in(&headers));
    }
}
