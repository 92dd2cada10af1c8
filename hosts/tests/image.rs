//! An image is built from the packages of the distribution. Run with `--ignored`: it needs apt and the network.

use host::build::{Order, build};

#[test]
#[ignore = "downloads 85 MB of packages"]
fn an_image_is_built_from_packages() {
    let own = std::env::current_exe().expect("a test has a path");
    let guestd = own.ancestors().nth(2).expect("tests are two folders below").join("guestd");
    assert!(guestd.exists(), "guestd is missing; build the package guest first");
    let kernel = std::env::var("PAUSEBED_TEST_KERNEL").ok();
    let order = Order { kernel, additions: Vec::new(), guestd };
    let watch = emulation::clock::Stopwatch::start();
    let mut progress = |line: &str| eprintln!("{:6.1} s  {line}", watch.seconds());
    let built = build(&order, &mut progress).unwrap_or_else(|error| panic!("{error}"));
    eprintln!(
        "{:6.1} s  {} ({})",
        watch.seconds(),
        built.image.folder.display(),
        built.accelerator
    );
    assert!(built.image.folder.starts_with(host::image::cache().unwrap()));
}
