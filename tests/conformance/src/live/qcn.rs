//! QCN live: what a switch says of its queues and to whom ([`messages`]), what it does to tags at the
//! border of a domain ([`border`]), what a NIC takes of messages ([`receiver`]), and what comes of it all
//! in a fabric ([`stability`]).

pub mod border;
pub mod messages;
pub mod receiver;
pub mod stability;

use super::ethernet;

/// The table `[scheme]` of QCN with these parameters, a line each.
fn qcn(params: &str) -> String {
    format!("[scheme]\nkind = \"qcn\"\n{params}\n")
}

/// A star that goes by VLAN priorities, whose switch has room for everything and this domain; with
/// further tables.
fn star(nics: u8, duration: &str, domain: &str, rest: &str) -> String {
    let room = ethernet::roomy(&format!(", cn = {{ {domain} }}"));
    ethernet::star(nics, duration, "priorities = \"pcp\"", &format!("{room}{rest}"))
}
