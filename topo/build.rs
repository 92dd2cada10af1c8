//! Tells the program which commit it was built from.

fn main() {
    println!("cargo:rerun-if-changed=../.git/HEAD");
    println!("cargo:rerun-if-changed=../.git/index");
    println!(
        "cargo:rustc-env=PAUSEBED_COMMIT={}",
        commit().unwrap_or_else(|| "unknown".to_owned())
    );
}

/// What HEAD points at, read from git's own files: no program needs to be there.
fn commit() -> Option<String> {
    let git = std::path::Path::new("../.git");
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let hash = match head.trim().strip_prefix("ref: ") {
        Some(reference) => std::fs::read_to_string(git.join(reference)).ok()?,
        None => head,
    };
    Some(hash.trim().chars().take(12).collect())
}
