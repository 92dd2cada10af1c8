//! The way in by TCP: at loopback alone, for who has the token and calls this host by its own name.
//!
//! Everybody on this host can reach loopback, a browser with somebody else's page in it included. So nothing
//! is answered without the token, and no answer permits another site to read it. A name that is not
//! this host's own is refused before the token is looked at: a foreign page may point a name of its
//! own at this address.

use super::routes::Problem;
use crate::daemon::token::Token;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

/// A socket of TCP before there is anybody to answer at it.
#[derive(Debug)]
pub struct Gate {
    /// Where it listens.
    pub address: SocketAddr,
    listener: TcpListener,
    token: Token,
}

/// What a request must know.
#[derive(Debug)]
struct Known {
    hosts: [String; 2],
    token: Token,
}

impl Gate {
    /// Listens at a port of loopback that the kernel chooses, for who has the token in `file`.
    ///
    /// # Errors
    /// If there is no token, or what the system says.
    pub fn open(file: &Path) -> io::Result<Gate> {
        let token = Token::read(file)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Gate { address: listener.local_addr()?, listener, token })
    }

    /// The socket, and `router` behind the question who it is.
    ///
    /// # Errors
    /// If there is no runtime to listen on.
    pub fn guard(
        self,
        router: axum::Router,
    ) -> io::Result<(tokio::net::TcpListener, axum::Router)> {
        let Gate { address, listener, token } = self;
        let hosts = [address.to_string(), format!("localhost:{}", address.port())];
        let known = Arc::new(Known { hosts, token });
        let router = router.layer(from_fn_with_state(known, admit));
        Ok((tokio::net::TcpListener::from_std(listener)?, router))
    }
}

async fn admit(State(known): State<Arc<Known>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_ours = |name: &str| known.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
    if !only(headers, HOST).is_some_and(is_ours) {
        let error = "this is no name of the daemon".to_owned();
        return (StatusCode::MISDIRECTED_REQUEST, Json(Problem { error })).into_response();
    }
    if !only(headers, AUTHORIZATION).and_then(bearer).is_some_and(|token| known.token.is(token)) {
        let error = "the token is missing or wrong: Authorization: Bearer TOKEN".to_owned();
        let ask = [(WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, ask, Json(Problem { error })).into_response();
    }
    next.run(request).await
}

/// The text of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// The token in `Bearer TOKEN`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
