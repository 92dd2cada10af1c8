//! ROCE live: what switches mark ([`marking`]) and what that leaves right in a fabric ([`passage`]), what
//! a NIC returns and refuses ([`notices`]), and how one obeys ([`sender`]).

pub mod marking;
pub mod notices;
pub mod passage;
pub mod sender;

/// The table `[scheme]` of DCQCN with these parameters, a line each.
fn dcqcn(params: &str) -> String {
    format!("[scheme]\nkind = \"dcqcn\"\n{params}\n")
}
