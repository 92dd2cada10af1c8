//! Writes the initial inputs of each corpus: `cargo run --example seed` in `fuzz/`.

use pausebed_fuzz::{TARGETS, seeds};
use std::path::Path;

fn main() -> std::io::Result<()> {
    for target in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (number, octets) in seeds::seeds(target.name).into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{number:02}")), octets)?;
        }
    }
    Ok(())
}
