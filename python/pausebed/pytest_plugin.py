"""A plugin of pytest: the fixtures `pausebed_run` and `pausebed_lab`, and the option `--pausebed-backend`."""

from __future__ import annotations

import itertools
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from . import Lab, Run, run
from .runs import Source


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pausebed")
    group.addoption("--pausebed-backend", default="virtual", metavar="BACKEND",
                    help="what pausebed_run runs scenarios on: virtual (the default), udp, netns, compose")


@pytest.fixture
def pausebed_run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Run]:
    """Runs a scenario, and fails the test unless all its expectations hold; `check=False` leaves that to the test.

    The run directory is in the temporary folder of the test, with its report.
    """
    numbers = itertools.count(1)

    def start(scenario: Source, *, check: bool = True, **options: Any) -> Run:
        __tracebackhide__ = True
        options.setdefault("backend", request.config.getoption("--pausebed-backend"))
        done = run(scenario, out=tmp_path / f"run-{next(numbers)}", **options)
        report = done.folder / "report.html"
        report.write_text(done.report(), encoding="utf-8")
        request.node.add_report_section("call", "pausebed", f"{done.name}: {done.verdict}, report: {report}")
        if check:
            done.check()
        return done

    return start


@pytest.fixture
def pausebed_lab(request: pytest.FixtureRequest) -> Iterator[Callable[..., Lab]]:
    """Starts a lab, which ends with the test."""
    numbers = itertools.count(1)
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:24].strip("-")
    with ExitStack() as labs:

        def start(scenario: Source, **options: Any) -> Lab:
            options.setdefault("name", f"{stem}-{os.getpid()}-{next(numbers)}")
            return labs.enter_context(Lab(scenario, **options))

        yield start
