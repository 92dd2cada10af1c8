//! Temporary.
#[test]
fn seed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/text");
    std::fs::create_dir_all(&folder).unwrap();
    for (number, octets) in pausebed_fuzz::seeds::seeds("text").into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:02}")), octets).unwrap();
    }
}
