//! A reason reaches the list.

use std::process::Command;

#[test]
fn a_reason_reaches_the_list_as_one_line_with_its_test() {
    const CHILD: &str = "PAUSEBED_SKIP_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return crate::because!("no {}\nhere", "tool");
    }
    let folder = std::env::temp_dir().join(format!("pausebed-skip-{}", std::process::id()));
    let this = std::env::current_exe().expect("the path of this test");
    let mut child = Command::new(this);
    child.args(["--exact", "tests::a_reason_reaches_the_list_as_one_line_with_its_test"]);
    let ended = child.env(CHILD, "").env("PAUSEBED_SKIPPED", &folder).output();
    assert!(ended.expect("the test runs once more").status.success());
    let list = std::fs::read_to_string(&folder).expect("the list");
    std::fs::remove_file(&folder).expect("the list is ours");
    let name = "tests::a_reason_reaches_the_list_as_one_line_with_its_test";
    assert_eq!(list, format!("no tool here ({name})\n"));
}
