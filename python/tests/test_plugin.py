def run_pytest(pytester, pytestconfig, *words):
    """Runs pytest with the plugin, which an installed wheel has registered already."""
    installed = pytestconfig.pluginmanager.has_plugin("pausebed")
    plugin = () if installed else ("-p", "pausebed.pytest_plugin")
    return pytester.runpytest_subprocess(*plugin, *words)


def test_a_failed_expectation_fails_the_test_and_names_the_report(pytester, pytestconfig, incast):
    incast["expect"][0]["min"] = 2
    incast.save(pytester.path / "incast.toml")
    pytester.makepyfile(
        """
        def test_bad(pausebed_run):
            pausebed_run("incast.toml")

        def test_good(pausebed_run):
            run = pausebed_run("incast.toml", check=False)
            assert run.verdict == "fail" and (run.folder / "report.html").exists()
        """
    )
    result = run_pytest(pytester, pytestconfig)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: incast2: fail*", "*received is * expected at least 2*", "*report: *report.html"])


def test_the_backend_is_an_option(pytester, pytestconfig, incast):
    incast["run.pace"] = "exact"
    incast.save(pytester.path / "incast.toml")
    pytester.makepyfile(
        """
        def test_live(pausebed_run):
            assert pausebed_run("incast.toml").result["backend"] == "udp"
        """
    )
    result = run_pytest(pytester, pytestconfig, "--pausebed-backend", "udp")
    result.assert_outcomes(passed=1)
