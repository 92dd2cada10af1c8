import functools
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import pausebed

#: What may differ between two runs of one scenario and seed (docs/tasks/run.md).
OF_THE_HOST = {"run.json", "report.html", "junit.xml", "scenario.toml"}


def tables(run):
    return {file.name: file.read_bytes() for file in run.folder.iterdir() if file.name not in OF_THE_HOST}


def test_a_run_has_a_verdict_measures_and_tables(incast):
    run = pausebed.run(incast)
    assert run.verdict == "pass"
    assert 0.9 < run.measures["received"] <= 1.0
    assert run.expectations[0]["measure"] == "received"
    assert len(run.flows) == len(run.flows["flow"]) and "h1>h9" in run.flows["flow"]
    assert all(isinstance(value, int) for value in run.ports["t_ps"])
    assert "flow" in run.rates.columns and "what" in run.queues.columns
    assert len(run.events) == len((run.folder / "events.jsonl").read_text().splitlines())
    run.check()


def test_a_run_equals_that_of_the_program(incast, tmp_path):
    ours = pausebed.run(incast, set={"run.seed": 7})
    incast.save(tmp_path / "incast2.toml")
    words = ["run", os.fspath(tmp_path / "incast2.toml"), "--seed", "7", "--no-report", "--out", os.fspath(tmp_path / "out")]
    pausebed.program.call(words)
    theirs = pausebed.Run.open(tmp_path / "out")
    assert tables(ours) == tables(theirs)
    assert ours.measures == theirs.measures


def test_seeds_run_side_by_side_and_in_order(incast, tmp_path):
    parts = []
    runs = pausebed.run(incast, seeds=range(1, 6), out=tmp_path / "seeds", jobs=2, progress=parts.append)
    assert [run.seed for run in runs] == [1, 2, 3, 4, 5]
    assert parts == [0.2, 0.4, 0.6, 0.8, 1.0]
    alone = pausebed.run(incast, seed=4)
    assert tables(alone) == tables(runs[3])


def test_another_backend_is_run_by_the_program(incast):
    run = pausebed.run(incast, backend="udp", set={"run.pace": "exact"})
    assert (run.result["backend"], run.verdict) == ("udp", "pass")
    assert run.measures == pausebed.run(incast).measures


def test_a_scenario_that_cannot_run_says_why_and_makes_nothing(incast, tmp_path):
    with pytest.raises(pausebed.ScenarioError, match="scheme.kind"):
        pausebed.run(incast, set={"scheme.kind": "nonesuch"}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(pausebed.Error):
        pausebed.run(incast, out="/proc/nowhere")


def test_a_failed_expectation_reads_like_an_assertion(incast):
    incast["expect"][0]["max"] = incast["expect"][0]["min"] = 0.5
    run = pausebed.run(incast)
    assert run.verdict == "fail"
    with pytest.raises(AssertionError, match=r"received is .*, expected at least 0.5 and at most 0.5 .*fill the line"):
        run.check()


def test_a_notebook_shows_verdict_and_picture_and_escapes_names(incast):
    incast["expect"][0]["why"] = "<script>alert(1)</script>"
    shown = pausebed.run(incast)._repr_html_()
    assert "pass" in shown and "<svg" in shown
    assert "<script>alert" not in shown


def test_events_and_ports_are_taken_by_pandas_and_polars(incast):
    table = pausebed.run(incast).ports
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(table)
    assert frame.height == len(table) and frame["t_ps"].to_list() == table["t_ps"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame.from_arrow(table)
    assert list(frame["port"]) == table["port"]


@pytest.mark.parametrize("seeds", ["None", "range(4)"])
def test_ctrl_c_ends_a_long_run(incast, tmp_path, seeds):
    incast["run.duration"] = "40000000 mtu"
    incast.keys["measure"] = incast.keys["expect"] = []
    incast.save(tmp_path / "long.toml")
    line = f"import pausebed; print('begun', flush=True); pausebed.run({str(tmp_path / 'long.toml')!r}, seeds={seeds})"
    # A job in the background of a shell without job control ignores SIGINT, and so would its children.
    default = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen(
        [sys.executable, "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default
    )
    try:
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode != 0 and said.strip().endswith("KeyboardInterrupt")


def test_an_exception_of_progress_ends_the_run_and_goes_on(incast):
    def stop(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        pausebed.run(incast, progress=stop)
    assert pausebed.run(incast).verdict == "pass"


def test_a_torn_run_directory_is_an_error(incast, tmp_path):
    run = pausebed.run(incast, out=tmp_path)
    (tmp_path / "ports.csv").write_text("t_ps,port\n1,2,3\n")
    with pytest.raises(pausebed.Error):
        pausebed.Run.open(tmp_path).ports
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(json.JSONDecodeError):
        pausebed.Run.open(run.folder)
