"""``cobre.train`` and ``cobre.simulate``: one process, or several that the parent starts and watches."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from cobre import _native
from cobre.errors import ValidationError, WorkerError
from cobre.membership import Membership, job_of_process, only_run
from cobre.paths import asked
from cobre.policy import Policy
from cobre.progress import Bar, Callback, Line, PathBar, Progress, listener
from cobre.results import SimulationResult, TrainingResult, Worker, simulation_result, training_result
from cobre.settings import CaseLike, absolute, count, given, maybe, maybe_text, processors_each, text
from cobre.workers import Team

PolicyLike = Policy | TrainingResult | str | os.PathLike[str]

GRACE_SECS = 60.0
"""How long workers that are asked to end may take to finish an iteration and write results."""


def train(
    case: CaseLike,
    *,
    config_overrides: Mapping[str, Any] | None = None,
    bound: float | None = None,
    iterations: int | None = None,
    seed: int | None = None,
    num_workers: int = 1,
    backend: str = "auto",
    threads: int | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Callback | None = None,
    resume: bool = False,
    retries: int = 0,
    checkpoint: str | None = None,
    forward_passes: int | None = None,
    risk: str | None = None,
    cut_selection: str | None = None,
    stop: str | Sequence[str] = (),
    stop_when_all: bool = False,
    simulate: int | None = None,
    simulate_stages: int | None = None,
    path_stages: int | None = None,
    solver: str | None = None,
    basis_memory: int | None = None,
    warm_start: PolicyLike | None = None,
    csv: bool = False,
    tables: bool = True,
    boundary: str | os.PathLike[str] | None = None,
    boundary_stage: int | str | None = None,
    upper_bound: int | None = None,
    upper_bound_states: int | None = None,
    communicator: _native.Communicator | None = None,
) -> TrainingResult:
    """Trains a policy for ``case``: a path, a loaded :class:`Case` or a :class:`Problem`.

    What is not given, the ``config.json`` of a case says, with ``config_overrides`` over it: a
    dictionary of the same form. StochOptFormat files and problems have no ``config.json``.

    With ``num_workers`` above 1, fresh interpreters share the work through shared memory
    (``backend="shm"``) or sockets (``"tcp"``). The result is the same bits for any number of workers
    and threads, and the same as that of ``cobre run`` with the same options.

    ``progress`` is called with a :class:`Progress` after every iteration, once per worker; ``True``
    draws a bar. If it raises, or Ctrl-C is pressed, the run ends after the iteration, writes what
    it has to ``output``, and the exception is raised.

    With ``output``, the state of training is kept there as ``checkpoint`` says (``"minutes:M"``,
    ``"iterations:K"`` or ``"none"``; every minute if not given), and when it is interrupted. ``resume=True`` goes on from the newest
    one, with the bits of a run that was never interrupted; ``retries`` is how often workers that have lost one of
    theirs do so by themselves. ``csv=True`` writes every table as CSV as well.

    ``simulate`` is the number of paths that the policy is tried on. The result then has their tables (storage, generation,
    prices, water values …) with the names of the files that ``cobre run`` writes, in memory where there is no ``output``;
    ``tables=False`` makes none there.

    A process that is a rank of a job (``cobre launch -- python …``) trains with the other ranks: all of them call
    this, and all get the result. With ``communicator`` the ranks are those of that job, such as one that
    ``Communicator.join`` has joined.

    ``boundary`` is the value after the last stage: the output directory of another run, or a JSON file with the cuts of
    SDDP.jl; ``boundary_stage`` is the stage of it whose cost to go is taken, that of the same date or name if not given.
    ``upper_bound`` is the number of iterations after each of which a deterministic bound from the other side is computed,
    from ``upper_bound_states`` visited states of each node at most.

    ``basis_memory`` is the memory in MiB for the bases that work units remember, over all workers. Results depend on it.

    ``warm_start`` is a policy whose cuts training begins with. The book's page on the Python package tells
    of the other arguments; they are the options of ``cobre run``.
    """
    workers = count("num_workers", num_workers)
    if resume and output is None:
        raise ValidationError("resume=True: output, the directory with the checkpoints, is needed")
    kept = text("checkpoint", "minutes:1" if checkpoint is None else checkpoint)
    if output is None and checkpoint is not None and kept != "none":
        raise ValidationError(f'checkpoint="{kept}" keeps the state of training in output: give one')
    again = count("retries", retries, least=0)
    if again and (output is None or workers == 1):
        raise ValidationError(f"retries={again} starts workers again: num_workers of at least 2 and output are needed")
    rules = [stop] if isinstance(stop, str) else stop
    request = {
        **_request(seed, threads, output, solver, csv, tables, basis_memory),
        "iterations": maybe("iterations", iterations),
        "forward_passes": maybe("forward_passes", forward_passes),
        "cut_selection": maybe_text("cut_selection", cut_selection),
        "stop": [text("stop", rule) for rule in rules],
        "stop_when_all": bool(stop_when_all),
        "simulate": maybe("simulate", simulate, least=0),
        "upper_bound": maybe("upper_bound", upper_bound),
        "upper_bound_states": maybe("upper_bound_states", upper_bound_states),
        "simulate_stages": maybe("simulate_stages", simulate_stages),
        "path_stages": maybe("path_stages", path_stages),
        "checkpoint": kept,
        "resume": bool(resume),
    }
    callback: Callback | None = listener(progress, lambda: Bar(request["iterations"]))

    def tell(rank: int, step: dict[str, Any]) -> None:
        if callback is not None and "iteration" in step:
            callback(Progress(worker_id=rank, **step))

    if output is not None and warm_start is not None and _is_policy_of(warm_start, absolute(output)):
        raise ValidationError("output is where the policy of warm_start is, which would be lost: give another output")
    start = None if warm_start is None else _policy(warm_start)._bare
    asked = given(case, bound, risk, config_overrides, boundary, boundary_stage)
    task = ("train", asked, request, start)
    while True:
        try:
            found, team = _run(task, workers, backend, callback, tell, communicator)
            return training_result(found, team, request["output"])
        except WorkerError as error:
            if again == 0 or not error.lost:
                raise
            again -= 1
            request["resume"] = True
            lost = str(error).splitlines()[0]
            warnings.warn(f"{lost}; starting again from the newest checkpoint, {again} more retries", stacklevel=2)


def simulate(
    case: CaseLike,
    policy: PolicyLike,
    *,
    paths: Any = None,
    labels: Sequence[str] | None = None,
    stages: int | None = None,
    config_overrides: Mapping[str, Any] | None = None,
    bound: float | None = None,
    seed: int | None = None,
    num_workers: int = 1,
    backend: str = "auto",
    threads: int | None = None,
    output: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int, int], Any] | None = None,
    solver: str | None = None,
    csv: bool = False,
    tables: bool = True,
    boundary: str | os.PathLike[str] | None = None,
    boundary_stage: int | str | None = None,
    communicator: _native.Communicator | None = None,
) -> SimulationResult:
    """Tries a policy on ``paths`` new paths: as many as the case says if not given, else 1000. In a cyclic graph they have
    ``stages`` stages, and without it end by chance.

    ``paths`` may be the paths themselves, named by ``labels`` in the tables: inflows of a case in m³/s, an array of
    paths × stages × hydro plants in the order of its files; openings of any problem whose stages have one node each,
    whole numbers from 0, an array of paths × stages; a file of scenarios, as ``cobre run --scenarios`` takes it; or of a
    ``Problem`` a list of paths, each a list of pairs ``(node, Opening(…))`` with numbers that no opening need have.

    ``seed`` is the policy's own if not given: then these are the paths that training with
    ``simulate=paths`` tries it on, with the same bits. ``progress`` is called with the number of paths
    done and the number of all; ``True`` draws a bar. If it raises, or Ctrl-C is pressed, the
    simulation ends soon and the exception is raised. The result has the tables of every stage of every path: with
    ``output`` they are written there, else they stay in memory (``tables=False`` makes none); ``csv=True`` writes every
    table as CSV as well. ``boundary`` and ``boundary_stage`` are those that the policy was trained with.
    """
    workers = count("num_workers", num_workers)
    bare = _policy(policy)._bare
    number, fixed = asked(case, paths, labels)
    problem = {**given(case, bound, None, config_overrides, boundary, boundary_stage), "paths": fixed}
    request = {
        **_request(bare["seed"] if seed is None else seed, threads, output, solver, csv, tables),
        "iterations": 1,
        "forward_passes": bare["forward_passes"],
        "cut_selection": None,
        "stop": [],
        "stop_when_all": False,
        "simulate": number,
        "upper_bound": None,
        "upper_bound_states": None,
        "simulate_stages": maybe("stages", stages),
        "path_stages": None,
        "checkpoint": "none",
        "resume": False,
    }
    callback = listener(progress, PathBar)

    def tell(rank: int, step: dict[str, Any]) -> None:
        if rank == 0:
            callback(step["done"], step["all"])

    task = ("simulate", problem, request, bare)
    tried, team = _run(task, workers, backend, callback, tell, communicator)
    return simulation_result(tried, team, request["output"])


def _is_policy_of(policy: PolicyLike, output: str) -> bool:
    """Whether a policy is the one in this directory of results."""
    if isinstance(policy, Policy):
        return False
    place = policy.output if isinstance(policy, TrainingResult) else absolute(policy)
    kept = os.path.join(output, "policy")
    if place is None or not os.path.exists(kept):
        return False
    found = [at for at in (place, os.path.join(place, "policy")) if os.path.exists(at)]
    return any(os.path.samefile(kept, at) for at in found)


def _policy(policy: PolicyLike) -> Policy:
    if isinstance(policy, TrainingResult):
        return policy.policy
    return policy if isinstance(policy, Policy) else Policy.load(policy)


def _request(
    seed: int | None,
    threads: int | None,
    output: str | os.PathLike[str] | None,
    solver: str | None,
    csv: bool,
    tables: bool,
    basis_memory: int | None = None,
) -> dict[str, Any]:
    if csv and output is None:
        raise ValidationError("csv=True: output, the directory for results, is needed")
    return {
        "seed": maybe("seed", seed, least=0, most=(1 << 64) - 1),
        "threads": maybe("threads", threads),
        "solver": maybe_text("solver", solver),
        "basis_memory": maybe("basis_memory", basis_memory, least=0, most=1 << 24),
        "output": None if output is None else absolute(output),
        "csv": bool(csv),
        "tables": bool(tables),
    }


def _run(
    task: tuple[Any, ...],
    workers: int,
    backend: str,
    callback: Any,
    tell: Callable[[int, dict[str, Any]], None],
    communicator: _native.Communicator | None,
) -> tuple[dict[str, Any], tuple[Worker, ...]]:
    """What the first rank found, and who took part; ``tell`` is called if there is a ``callback``."""
    with callback if isinstance(callback, Line) else nullcontext():
        comm = _job(communicator, workers, text("backend", backend))
        found, team = _found(task, workers, backend, None if callback is None else tell, comm)
    for warning in found["warnings"]:
        warnings.warn(warning, stacklevel=3)
    return found, team


def _job(communicator: _native.Communicator | None, workers: int, backend: str) -> _native.Communicator | None:
    """The job whose ranks share the work: the one that is given, else that of this process."""
    if communicator is None:
        return job_of_process(workers, backend)
    if not isinstance(communicator, _native.Communicator):
        raise ValidationError("communicator: a cobre.Communicator is expected")
    if workers > 1 or backend not in ("auto", communicator.backend):
        raise ValidationError("communicator: its ranks are the workers; leave out num_workers and backend")
    return communicator


def _found(
    task: tuple[Any, ...],
    workers: int,
    backend: str,
    tell: Callable[[int, dict[str, Any]], None] | None,
    comm: _native.Communicator | None,
) -> tuple[dict[str, Any], tuple[Worker, ...]]:
    what, asked, request, policy = task
    if comm is not None:
        return _found_together(comm, task, tell)
    if request["threads"] is None:
        request["threads"] = processors_each(workers)
    if workers == 1 and backend in ("auto", "local"):
        alone = Worker(rank=0, pid=os.getpid(), host=socket.gethostname(), backend="local")
        hear = None if tell is None else lambda step: tell(0, step)
        return getattr(_native, what)(asked, request, policy, None, hear), (alone,)
    team = Team(workers, backend, grace_secs=GRACE_SECS, bind=request["threads"] == 1)
    # Workers would all find the same errors.
    _native.check(asked, request)
    ended = team.run((*task, tell is not None), step=tell)
    return ended.results[0], ended.workers


def _found_together(
    comm: _native.Communicator,
    task: tuple[Any, ...],
    tell: Callable[[int, dict[str, Any]], None] | None,
) -> tuple[dict[str, Any], tuple[Worker, ...]]:
    """As one rank of a job, all of whose ranks get what the first one found."""
    what, asked, request, policy = task
    with only_run():
        member = Membership(comm)
        if request["threads"] is None:
            request["threads"] = processors_each(member.neighbours)
        hear = None if tell is None else lambda step: tell(comm.rank, step)
        found = getattr(_native, what)(asked, request, policy, comm, hear)
        return member.from_first(found), member.workers
