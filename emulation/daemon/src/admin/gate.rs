//! The way in by TCP, for who has the token and calls this host by its own name. It is at loopback, or in
//! the network of the lab that the daemon has joined.
//!
//! Everybody on this host can reach either, a browser with somebody else's page in it included. So nothing
//! is answered without the token, and no answer permits another site to read it. A name that is not
//! this host's own is refused before the token is looked at.

use super::names::{OwnNames, only};
use super::routes::Problem;
use crate::config::TcpConfig;
use crate::token::Token;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

/// A socket of TCP before there is anybody to answer at it.
#[derive(Debug)]
pub(crate) struct TokenGate {
    /// Where it listens.
    pub address: SocketAddr,
    listener: TcpListener,
    known: Known,
}

/// What a request must know.
#[derive(Debug)]
struct Known {
    names: OwnNames,
    token: Token,
}

impl TokenGate {
    /// Listens at a port of `host` for those whom `told` names.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(host: IpAddr, told: &TcpConfig) -> io::Result<TokenGate> {
        let listener = TcpListener::bind((host, told.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let names = OwnNames::new(address, told.name.clone());
        Ok(TokenGate { address, listener, known: Known { names, token: told.token.clone() } })
    }

    /// The socket, and `router` behind the question who it is.
    ///
    /// # Errors
    /// If there is no runtime to listen on.
    pub fn guard(
        self,
        router: axum::Router,
    ) -> io::Result<(tokio::net::TcpListener, axum::Router)> {
        let TokenGate { listener, known, .. } = self;
        let router = router.layer(from_fn_with_state(Arc::new(known), admit));
        Ok((tokio::net::TcpListener::from_std(listener)?, router))
    }
}

async fn admit(State(known): State<Arc<Known>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !known.names.are_in(headers) {
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

/// The token in `Bearer TOKEN`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
