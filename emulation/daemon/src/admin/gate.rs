//! Access by TCP: for clients that have the token and call this host by a name of its own. A second token, which follows
//! from the first, permits reading only.
//!
//! The socket is at loopback or in the network of the lab, and every program on this host can reach it,
//! including a browser that shows a foreign page. So no request is answered without the token, and no answer
//! permits another site to read it. A request by a foreign name is refused before the token is compared.

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

/// A listening TCP socket before the server starts.
#[derive(Debug)]
pub(crate) struct TokenGate {
    /// Its address.
    pub address: SocketAddr,
    listener: TcpListener,
    known: Known,
}

/// What a request must match.
#[derive(Debug)]
struct Known {
    names: OwnNames,
    token: Token,
    read_only: Token,
}

impl TokenGate {
    /// Listens at a port of `host`, with the name and the token of `config`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(host: IpAddr, config: &TcpConfig) -> io::Result<TokenGate> {
        let listener = TcpListener::bind((host, config.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let names = OwnNames::new(address, config.name.clone());
        let (token, read_only) = (config.token.clone(), config.token.read_only());
        Ok(TokenGate { address, listener, known: Known { names, token, read_only } })
    }

    /// The socket, and `router` behind the check of name and token.
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
        let error = "this is not a name of the daemon".to_owned();
        return (StatusCode::MISDIRECTED_REQUEST, Json(Problem { error })).into_response();
    }
    let shown = only(headers, AUTHORIZATION).and_then(bearer).unwrap_or_default();
    let may_change = known.token.is(shown);
    if !may_change && !known.read_only.is(shown) {
        let error = "the token is missing or wrong: Authorization: Bearer TOKEN".to_owned();
        let ask = [(WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, ask, Json(Problem { error })).into_response();
    }
    if !may_change && !request.method().is_safe() {
        let error = "this token permits reading only".to_owned();
        return (StatusCode::FORBIDDEN, Json(Problem { error })).into_response();
    }
    next.run(request).await
}

/// The token in `Bearer TOKEN`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
