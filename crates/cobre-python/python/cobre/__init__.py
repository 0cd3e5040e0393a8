"""Cobre trains policies for multistage problems under uncertainty, on one core or many.

>>> result = cobre.train("case.sof.json", bound=0.0, iterations=50, num_workers=4)
>>> result.bound
"""

from cobre._native import Communicator, SharedArray
from cobre.bands import Bands, bands
from cobre.case import Case, Node, ValidationResult, load, validate
from cobre.errors import (
    CobreError,
    CommunicationError,
    IOError,
    SolverError,
    ValidationError,
    WorkerError,
)
from cobre.policy import Policy
from cobre.problem import Opening, Problem, Program
from cobre.progress import Progress
from cobre.reporting import report
from cobre.results import Estimate, SimulationResult, TrainingResult, Worker
from cobre.spawning import spawn
from cobre.summary import Summary, summary
from cobre.table import Table
from cobre.tables import Tables
from cobre.tracker import Tracker
from cobre.training import simulate, train

__version__ = "0.1.0"

__all__ = [
    "Bands",
    "Case",
    "CobreError",
    "CommunicationError",
    "Communicator",
    "Estimate",
    "IOError",
    "Node",
    "Opening",
    "Policy",
    "Problem",
    "Program",
    "Progress",
    "SharedArray",
    "SimulationResult",
    "SolverError",
    "Summary",
    "Table",
    "Tables",
    "Tracker",
    "TrainingResult",
    "ValidationError",
    "ValidationResult",
    "Worker",
    "WorkerError",
    "bands",
    "load",
    "report",
    "simulate",
    "spawn",
    "summary",
    "train",
    "validate",
]
