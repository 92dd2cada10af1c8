"""pausebed: a laboratory for lossless networks made of real packets.

run()       runs a scenario, on the virtual clock in this process or on sockets by the program
Run         a run directory: verdict, measures, tables as Apache Arrow, pictures
Scenario    a scenario file as a tree of keys
frames      frames decoded, encoded, checked
lab         a lab as a context manager
device      a NIC or a switch port in Python, at an attached port
"""

from . import device, frames, lab, program
from ._native import Error, Table
from .errors import Problem, ScenarioError
from .lab import Lab
from .runs import Run, run
from .scenario import Scenario

__all__ = [
    "Error",
    "Lab",
    "Problem",
    "Run",
    "Scenario",
    "ScenarioError",
    "Table",
    "device",
    "frames",
    "lab",
    "program",
    "run",
]
