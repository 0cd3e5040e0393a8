"""Cobre trains policies for multistage problems under uncertainty, on one core or many.

>>> result = cobre.train("case.sof.json", bound=0.0, iterations=50, num_workers=4)
>>> result.bound
"""

from cobre._native import Communicator, SharedArray
from cobre.case import Case, Node, ValidationResult, load, validate
from cobre.errors import (
    CobreError,
    CommunicationError,
    IOError,
    SolverError,
    ValidationError,
    WorkerError,
)
from cobre.problem import Opening, Problem, Program
from cobre.progress import Progress
from cobre.results import Estimate, TrainingResult, Worker
from cobre.spawning import spawn
from cobre.table import Table
from cobre.training import train

__version__ = "0.1.0"

__all__ = [
    "Case",
    "CobreError",
    "CommunicationError",
    "Communicator",
    "Estimate",
    "IOError",
    "Node",
    "Opening",
    "Problem",
    "Program",
    "Progress",
    "SharedArray",
    "SolverError",
    "Table",
    "TrainingResult",
    "ValidationError",
    "ValidationResult",
    "Worker",
    "WorkerError",
    "load",
    "spawn",
    "train",
    "validate",
]
