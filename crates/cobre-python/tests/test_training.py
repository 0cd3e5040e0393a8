"""Training: the same bits as the command, results, progress."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import cobre
import numpy as np
import pytest

OPTIONS = {"bound": 0.0, "iterations": 25, "seed": 7, "forward_passes": 3}


@pytest.fixture(scope="session")
def told(program, tmp_path_factory) -> tuple[dict, Path]:
    """What the command says, and what it writes."""
    output = tmp_path_factory.mktemp("command")
    root = Path(__file__).resolve().parents[3]
    line = subprocess.run(
        [program, "run", str(root / "examples/two_reservoirs.sof.json"), "--bound=0", "--iterations=25"]
        + ["--seed=7", "--forward-passes=3", "--simulate=200", "--json", "--quiet", f"--output={output}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(line), output


@pytest.mark.parametrize(
    ("workers", "backend"),
    [(1, "auto"), (1, "shm"), (2, "shm"), (2, "tcp"), (4, "shm"), (4, "tcp")],
)
def test_results_are_the_bits_of_the_command(case, told, tmp_path, workers, backend):
    line, directory = told
    result = cobre.train(
        case, **OPTIONS, num_workers=workers, backend=backend, simulate=200, output=tmp_path / "out"
    )
    assert result.policy_sha256 == line["policy_sha256"]
    assert result.bound == line["bound"]
    assert result.estimate.mean == line["estimate"]["mean"]
    assert result.estimate.half_width_95 == line["estimate"]["half_width_95"]
    assert result.estimate.source == "simulation"
    assert result.validation == tuple(line["validation"])
    assert result.lp_solves == line["lp_solves"]
    assert result.stop_reason == line["stop_reason"] == "iteration_limit"
    for file in ["training/convergence.parquet", "policy/cuts.parquet", "simulation/paths.parquet"]:
        assert (tmp_path / "out" / file).read_bytes() == (directory / file).read_bytes(), file
    assert [worker.rank for worker in result.workers] == list(range(workers))
    assert len({worker.pid for worker in result.workers}) == workers
    assert result.workers[0].backend == ("local" if backend == "auto" else backend)


def test_twice_is_the_same_and_threads_change_nothing(case):
    first = cobre.train(case, **OPTIONS, threads=1)
    again = cobre.train(case, **OPTIONS, threads=3)
    assert first.policy_sha256 == again.policy_sha256
    for name in first.convergence:
        assert np.array_equal(first.convergence[name], again.convergence[name], equal_nan=True)
    assert cobre.train(case, **{**OPTIONS, "seed": 8}).policy_sha256 != first.policy_sha256


def test_defaults_stop_where_the_command_stops(case, program):
    line = subprocess.run(
        [program, "run", case, "--bound=0", "--json", "--quiet"], check=True, capture_output=True, text=True
    ).stdout
    result = cobre.train(case, bound=0.0)
    found = json.loads(line)
    assert (result.stop_reason, result.iterations) == (found["stop_reason"], found["iterations"])
    assert result.policy_sha256 == found["policy_sha256"]


def test_options_reach_the_engine(case, program):
    line = subprocess.run(
        [program, "run", case, "--bound=0", "--iterations=12", "--risk=cvar:0.5,0.25", "--cut-selection=lml1"]
        + ["--stop=stalling:3,1e-12", "--stop=time:1000", "--stop-when-all", "--json", "--quiet"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    result = cobre.train(
        case,
        bound=0.0,
        iterations=12,
        risk="cvar:0.5,0.25",
        cut_selection="lml1",
        stop=["stalling:3,1e-12", "time:1000"],
        stop_when_all=True,
    )
    found = json.loads(line)
    assert cobre.train(case, bound=0.0, stop="iterations:3").iterations == 3
    assert (result.policy_sha256, result.stop_reason) == (found["policy_sha256"], found["stop_reason"])


def test_a_rule_that_a_risk_measure_makes_senseless_is_refused(case):
    with pytest.raises(cobre.ValidationError, match="statistical"):
        cobre.train(case, bound=0.0, risk="cvar:0.5,0.25", stop=["statistical:4"])


def test_results_are_shown(case):
    result = cobre.train(case, **OPTIONS)
    assert repr(result.bound) in repr(result)
    assert "<table>" in result._repr_html_()
    assert "iteration" in repr(result.convergence)
    assert "<table>" in result.convergence._repr_html_()
    assert result.iterations == 25
    assert result.gap == pytest.approx((result.estimate.mean - result.bound) / result.bound)


def test_convergence_is_a_table(case):
    result = cobre.train(case, **OPTIONS)
    table = result.convergence
    assert list(table["iteration"]) == list(range(1, 26))
    assert table["bound"][-1] == result.bound
    assert np.all(np.diff(table["bound"]) >= -1e-9 * result.bound)
    with pytest.raises(ValueError, match="read-only"):
        table["bound"][0] = 0.0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_go_to_data_frames(case, library):
    table = cobre.train(case, **OPTIONS).convergence
    frame = getattr(table, f"to_{library}")()
    assert len(frame) == 25
    last = frame["bound"][24]
    assert (last.as_py() if library == "pyarrow" else last) == table["bound"][24]
    if library == "pyarrow":
        import pyarrow

        texts = pyarrow.table(cobre.Table({"name": ["a", "b"], "value": [1.5, float("nan")]}))
        assert texts.column_names == ["name", "value"]
        assert texts["name"].to_pylist() == ["a", "b"]


def test_arrow_takes_numbers_where_they_are(case):
    import pyarrow

    table = cobre.train(case, **OPTIONS).convergence
    taken = pyarrow.table(table)
    for name in ["iteration", "bound"]:
        assert taken[name].chunk(0).buffers()[1].address == table[name].ctypes.data
    # It keeps them alive.
    bounds = list(table["bound"])
    del table
    assert taken["bound"].to_pylist() == bounds


def test_tables_are_compared_and_pickled(case):
    result = cobre.train(case, **OPTIONS)
    table = result.convergence
    again = pickle.loads(pickle.dumps(result))
    assert again.convergence == table and again.policy == result.policy and again != result
    assert not again.convergence["bound"].flags.writeable
    assert table != cobre.train(case, **{**OPTIONS, "seed": 8}).convergence
    assert table != result.timings and table != {}
    for columns, word in [({"a": [1, 2], "b": [1]}, "length"), ({"a": 3}, "dimension"), ({"a": [[1]]}, "dimension")]:
        with pytest.raises(cobre.ValidationError, match=word):
            cobre.Table(columns)


@pytest.mark.parametrize("workers", [1, 2])
def test_tables_are_written_as_csv_too(case, tmp_path, workers):
    result = cobre.train(case, **OPTIONS, simulate=5, output=tmp_path / "run", csv=True, num_workers=workers)
    cobre.simulate(case, result, bound=0.0, paths=5, output=tmp_path / "tried", csv=True, num_workers=workers)
    lines = (tmp_path / "run/training/convergence.csv").read_text().splitlines()
    assert len(lines) == 26
    for directory in ["run", "tried"]:
        assert len((tmp_path / directory / "simulation/paths.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize("workers", [1, 2])
def test_training_begins_with_the_cuts_of_a_policy_as_the_command_does(case, program, tmp_path, workers):
    first = cobre.train(case, **OPTIONS, output=tmp_path / "first")
    line = subprocess.run(
        [program, "run", case, "--bound=0", "--iterations=4", f"--warm-start={tmp_path / 'first'}"]
        + ["--seed=9", "--json", "--quiet"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for policy in [first, first.policy, tmp_path / "first"]:
        result = cobre.train(case, bound=0.0, iterations=4, seed=9, warm_start=policy, num_workers=workers)
        assert result.policy_sha256 == json.loads(line)["policy_sha256"]
        assert result.convergence["bound"][0] >= first.bound
        if workers > 1:
            break


def test_seeds_are_those_of_the_command(case, program):
    line = subprocess.run(
        [program, "run", case, "--bound=0", "--iterations=2", f"--seed={2**64 - 1}", "--json", "--quiet"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    result = cobre.train(case, bound=0.0, iterations=2, seed=2**64 - 1)
    assert result.policy_sha256 == json.loads(line)["policy_sha256"]
    assert cobre.simulate(case, result, bound=0.0, paths=2).estimate.paths == 2


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_arrives_in_order_from_every_worker(case, workers):
    seen: dict[int, list[int]] = {}
    result = cobre.train(
        case,
        **OPTIONS,
        num_workers=workers,
        progress=lambda told: seen.setdefault(told.worker_id, []).append(told.iteration),
    )
    assert seen == {worker: list(range(1, 26)) for worker in range(workers)}
    assert result.iterations == 25


def test_progress_tells_what_the_table_has(case):
    told: list[cobre.Progress] = []
    result = cobre.train(case, **OPTIONS, num_workers=2, progress=told.append)
    of_first = [each for each in told if each.worker_id == 0]
    assert [each.bound for each in of_first] == list(result.convergence["bound"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_callback_that_raises_stops_the_run_and_is_raised(case, workers):
    seen = []

    def callback(told: cobre.Progress) -> None:
        seen.append(told.iteration)
        if told.iteration == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        cobre.train(case, bound=0.0, iterations=10**6, num_workers=workers, progress=callback)
    assert max(seen) <= 4
    assert cobre.train(case, **OPTIONS).iterations == 25


def test_a_bar_is_drawn_within_the_terminal(case):
    import os
    import pty

    # Not within pytest, which has no terminal.
    main, end = pty.openpty()
    text = "import sys, cobre\ncobre.train(sys.argv[1], bound=0.0, iterations=400, threads=1, progress=True)\n"
    run = subprocess.Popen(
        [sys.executable, "-c", text, case], stderr=end, env={**os.environ, "COLUMNS": "50"}
    )
    os.close(end)
    drawn = b""
    with open(main, "rb", buffering=0) as terminal:
        while True:
            try:
                part = terminal.read(4096)
            except OSError:
                break
            if not part:
                break
            drawn += part
    assert run.wait(timeout=60) == 0
    lines = drawn.decode().rstrip("\r\n").split("\r")
    assert "400/400" in lines[-1] and drawn.count(b"\n") == 1
    assert all(len(line) < 50 for line in lines)


def test_what_is_no_terminal_gets_the_last_state_of_the_bar(case, capsys):
    cobre.train(case, bound=0.0, iterations=40, progress=True)
    drawn = capsys.readouterr().err
    assert drawn.count("\n") == 1 and "40/40" in drawn and "\r" not in drawn
    result = cobre.train(case, bound=0.0, iterations=2)
    cobre.simulate(case, result, bound=0.0, paths=20, progress=True)
    assert capsys.readouterr().err.endswith("20/20\n")


def test_other_threads_run_meanwhile(case):
    steps = 0
    done = threading.Event()

    def work():
        cobre.train(case, bound=0.0, iterations=400, threads=1)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        steps += 1
        time.sleep(0)
    thread.join()
    assert steps > 100


def test_threads_may_train_at_the_same_time(case):
    found: list[str] = []

    def work():
        found.append(cobre.train(case, **OPTIONS, num_workers=2).policy_sha256)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [cobre.train(case, **OPTIONS).policy_sha256] * 3


def test_a_plot_is_drawn(case):
    import matplotlib

    matplotlib.use("Agg")
    ax = cobre.train(case, **OPTIONS).plot_convergence()
    assert len(ax.get_lines()) == 2


def test_a_bound_above_the_optimum_is_noticed(case):
    with pytest.warns(UserWarning, match="wrong side of the estimate"):
        cobre.train(case, bound=5840.0, iterations=12, forward_passes=4, simulate=200)


def test_the_gap_has_the_sign_of_the_command(case):
    result = cobre.train(case, bound=0.0, iterations=10, forward_passes=3, simulate=50, seed=3)
    assert result.gap == pytest.approx((result.estimate.mean - result.bound) / abs(result.bound))
