//! Lists the scenario files for the program, which contains them all.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name| env::var(name).map_err(io::Error::other);
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../topo/scenarios");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    gather(&root, &mut files)?;
    let name = |file: PathBuf| {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.with_extension("");
        Ok((name.display().to_string(), file))
    };
    let mut named = files.into_iter().map(name).collect::<io::Result<Vec<_>>>()?;
    named.sort();
    let mut table = String::from("&[\n");
    for (name, file) in named {
        let _ = writeln!(table, "    ({name:?}, include_str!({file:?})),");
    }
    fs::write(Path::new(&variable("OUT_DIR")?).join("scenarios.rs"), table + "]\n")
}

/// Adds the scenario files below `folder`.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
