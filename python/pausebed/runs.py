"""Runs of scenarios, and run directories."""

from __future__ import annotations

import html
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Union, overload

from . import _native, program
from .errors import Problem, ScenarioError
from .scenario import PathLike, Scenario, overrides, resolved

Source = Union[PathLike, Scenario]


class Run:
    """A run directory. Tables are read when they are asked for."""

    def __init__(self, folder: PathLike, _owner: Any = None) -> None:
        self.folder = Path(folder)
        # A temporary folder lives as long as the runs in it.
        self._owner = _owner
        self.result: dict[str, Any] = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))

    @classmethod
    def open(cls, folder: PathLike) -> Run:
        """The run in a folder that `pausebed run --out` or `run(out=…)` has written."""
        return cls(folder)

    @property
    def name(self) -> str:
        return self.result["scenario"]

    @property
    def seed(self) -> int:
        return self.result["seed"]

    @property
    def verdict(self) -> str:
        """"pass", "fail" or "inconclusive"."""
        return self.result["verdict"]

    @property
    def measures(self) -> dict[str, Any]:
        """Measures by name; None for one without a value."""
        return self.result["measures"]

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """Each with measure, value, min or max, verdict, and why."""
        return self.result["expectations"]

    def _table(self, name: str) -> _native.Table:
        return _native.Table.from_csv(self.folder / f"{name}.csv")

    @cached_property
    def ports(self) -> _native.Table:
        """A row per bin, port and lane."""
        return self._table("ports")

    @cached_property
    def queues(self) -> _native.Table:
        """A row per bin, port, lane and queue."""
        return self._table("queues")

    @cached_property
    def rates(self) -> _native.Table:
        """A row per bin and flow."""
        return self._table("rates")

    @cached_property
    def flows(self) -> _native.Table:
        """A row per flow: totals at the stop."""
        return self._table("flows")

    @cached_property
    def counters(self) -> _native.Table:
        """A row per port and counter that is not zero."""
        return self._table("counters")

    @cached_property
    def fidelity(self) -> _native.Table:
        """A row per bin and process of a live run."""
        return self._table("fidelity")

    @cached_property
    def events(self) -> _native.Table:
        """A row per event."""
        return _native.Table.from_jsonl(self.folder / "events.jsonl")

    def failures(self) -> list[str]:
        """Each expectation that does not hold, lost lossless frames, and violations of physics, in a sentence."""
        lost = self.result.get("lossless_drops") or {}
        broken = [_broken(one) for one in [self.result.get("violations")] if one]
        drops = [_lost(lost)] if lost and "expected" not in lost else []
        return [_failure(one) for one in self.expectations if one["verdict"] != "pass"] + drops + broken

    def check(self) -> None:
        """Raises AssertionError unless the run has passed, with what it expected and what it measured."""
        if self.verdict != "pass":
            why = self.failures() or ["frames are missing, or the host did not keep up; see run.json"]
            raise AssertionError(f"{self.name}: {self.verdict}\n  " + "\n  ".join(why) + f"\n  run directory: {self.folder}")

    def report(self, baseline: Run | None = None) -> str:
        """The page `report.html`."""
        return _native.report_page(self.folder, baseline.folder if baseline else None)

    def figures(self) -> dict[str, str]:
        """The figures of the page: SVG and CSV by file name."""
        return dict(_native.figures(self.folder))

    def __repr__(self) -> str:
        return f"<pausebed.Run {self.name}, seed {self.seed}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """The verdict, what was expected, and the first picture, for notebooks."""
        cells = [(one["measure"], _bounds(one), _number(one["value"]), one["verdict"]) for one in self.expectations]
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
        head = "".join(f"<th>{cell}</th>" for cell in ("measure", "expected", "measured", "verdict"))
        pictures = [text for name, text in self.figures().items() if name.endswith(".svg")]
        title = f"{html.escape(self.name)}, seed {self.seed}: <b>{html.escape(self.verdict)}</b>"
        return f"<div><p>{title}</p><table><tr>{head}</tr>{rows}</table>{pictures[0] if pictures else ''}</div>"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "no value" if value is None else str(value)


def _bounds(one: Mapping[str, Any]) -> str:
    words = [f"{word} {_number(one[key])}" for key, word in (("min", "at least"), ("max", "at most")) if one.get(key) is not None]
    return " and ".join(words)


def _lost(drops: Mapping[str, Any]) -> str:
    why = ", ".join(f"{frames} {reason}" for reason, frames in drops["reasons"].items())
    return f"{drops['frames']} lossless frames lost: {why}, first at {drops['port']} after {drops['at_ps'] / 1e6:.1f} us"


def _broken(one: Mapping[str, Any]) -> str:
    return f"{one['port']}: a frame of {one['bytes']} octets at {one['at_ps']} ps breaks the law {one['law']}"


def _failure(one: Mapping[str, Any]) -> str:
    why = f" ({one['why']})" if one.get("why") else ""
    return f"{one['measure']} is {_number(one.get('value'))}, expected {_bounds(one)}{why}: {one['verdict']}"


@overload
def run(scenario: Source, *, set: Mapping[str, Any] | None = ..., seed: int | None = ..., seeds: None = ..., backend: str = ...,
        out: PathLike | None = ..., threads: int = ..., jobs: int | None = ...,
        progress: Callable[[float], Any] | None = ...) -> Run: ...
@overload
def run(scenario: Source, *, set: Mapping[str, Any] | None = ..., seed: None = ..., seeds: Iterable[int], backend: str = ...,
        out: PathLike | None = ..., threads: int = ..., jobs: int | None = ...,
        progress: Callable[[float], Any] | None = ...) -> list[Run]: ...


def run(scenario, *, set=None, seed=None, seeds=None, backend="virtual", out=None, threads=1, jobs=None, progress=None):
    """Runs a scenario: a file, or a Scenario. With `seeds` a list of runs, in their order.

    set       values of keys, as {"scheme.ccti_increase": 4}
    backend   "virtual" runs in this process, `jobs` runs at a time, without the lock of the interpreter; another backend is
              run by the program pausebed, one after another
    out       the run directory, or with seeds their folder; a temporary one otherwise
    threads   threads for each run; they change no result
    progress  is called with the part of fabric time that has passed

    Raises ScenarioError for a scenario that cannot be run, and Error for a run without a result.
    """
    text = scenario.text if isinstance(scenario, Scenario) else resolved(scenario)
    owner = None if out else tempfile.TemporaryDirectory(prefix="pausebed-")
    base = Path(out or owner.name)
    numbers = [seed] if seeds is None else list(seeds)
    folders = [base if seeds is None else base / f"seed-{number}" for number in numbers]
    plans = []
    for number, folder in zip(numbers, folders):
        keys = dict(set or {}, **{"run.backend": backend})
        if number is not None:
            keys["run.seed"] = number
        plans.append((overrides(keys), folder))
    problems = _native.problems(text, plans[0][0])[0] if plans else []
    if problems:
        raise ScenarioError([Problem(*row) for row in problems])
    if backend == "virtual":
        _on_the_virtual_clock(text, plans, threads, jobs, progress)
    else:
        for sets, folder in plans:
            _by_the_program(text, sets, folder)
    runs = [Run(folder, owner) for folder in folders]
    return runs[0] if seeds is None else runs


def _on_the_virtual_clock(text, plans, threads, jobs, progress):
    if len(plans) == 1:
        _native.run(text, *plans[0], threads, progress)
        return
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        runs = [pool.submit(_native.run, text, *plan, threads) for plan in plans]
        try:
            for number, one in enumerate(runs, 1):
                one.result()
                if progress:
                    progress(number / len(runs))
        except BaseException:
            # Ctrl-C reaches this thread alone: the runs are ended before the exception goes on.
            _native.interrupt(True)
            pool.shutdown(wait=True, cancel_futures=True)
            _native.interrupt(False)
            raise


def _by_the_program(text, sets, folder):
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        words = [word for one in sets for word in ("--set", one)]
        program.call(["run", file.name, "--out", os.fspath(folder), "--no-report", *words], program.CONCLUDED)
