"""Bad input, and workers that fail."""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import time

import cobre
import pytest
from conftest import eventually, script, started, worker_pid, worker_pids


def infeasible() -> cobre.Problem:
    problem = cobre.Problem(bound=0.0)
    problem.state("level", 1.0)
    program = problem.program()
    incoming, outgoing = program.state("level")
    program.row("balance", {outgoing: 1.0, incoming: -1.0}, equals=0.0)
    program.row("demand", {outgoing: 1.0}, lower=5.0)
    problem.node("first", program)
    problem.node("second", program, after="first")
    return problem


def test_a_missing_file_is_an_io_error():
    with pytest.raises(cobre.IOError, match="nowhere.sof.json") as caught:
        cobre.train("/nowhere.sof.json", bound=0.0)
    assert (caught.value.kind, caught.value.file) == ("io", "/nowhere.sof.json")
    assert cobre.IOError.kind == "io"


def test_a_wrong_file_tells_all_that_is_wrong(tmp_path, case):
    problem = json.loads(open(case).read())
    for name in ["wet2", "dry2"]:
        problem["nodes"][name]["subproblem"] = f"none-{name}"
    wrong = tmp_path / "wrong.sof.json"
    wrong.write_text(json.dumps(problem))
    for workers in [1, 2]:
        with pytest.raises(cobre.ValidationError) as caught:
            cobre.train(wrong, bound=0.0, num_workers=workers)
        for name in ["wet2", "dry2"]:
            assert f"nodes.{name}.subproblem: there is no subproblem none-{name}" in caught.value.findings
    found = cobre.validate(wrong, bound=0.0)
    assert not found and found.findings == caught.value.findings


def test_a_missing_bound_is_found(case):
    with pytest.raises(cobre.ValidationError, match="bound"):
        cobre.train(case)
    assert not cobre.validate(case).ok
    assert cobre.validate(case, bound=0.0).ok


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"risk": "var"}, "risk"),
        ({"cut_selection": "some"}, "cut_selection"),
        ({"stop": ["gap:1"]}, "stop"),
        ({"solver": "abacus"}, "solver"),
        ({"basis_memory": -1}, "basis_memory"),
        ({"iterations": 0}, "iterations"),
        ({"forward_passes": -1}, "forward_passes"),
        ({"threads": 0}, "threads"),
        ({"seed": -1}, "seed"),
        ({"num_workers": 0}, "num_workers"),
        ({"num_workers": 100000}, "ranks"),
        ({"num_workers": 2, "backend": "mpi"}, "backend"),
        ({"num_workers": 2, "backend": "local"}, "backend"),
        ({"backend": "carrier pigeon"}, "backend"),
        ({"bound": float("nan")}, "bound"),
        ({"seed": 2**64}, "seed=.*at most"),
        ({"threads": 1025}, "threads=1025.*1024"),
        ({"forward_passes": 100_001}, "forward_passes"),
        ({"csv": True}, "csv=True: output"),
        ({"checkpoint": "daily"}, "checkpoint"),
        ({"retries": -1}, "retries"),
        ({"retries": 1}, "retries=1.*output"),
    ],
)
def test_a_wrong_setting_is_named(case, options, word):
    for workers in [1, 2]:
        with pytest.raises(cobre.ValidationError, match=word):
            cobre.train(case, **{"bound": 0.0, "iterations": 2, "num_workers": workers, **options})


@pytest.mark.parametrize(
    "options",
    [
        {"iterations": "ten"},
        {"num_workers": 2.0},
        {"risk": 1},
        {"cut_selection": 1},
        {"stop": [1]},
        {"checkpoint": 1},
        {"solver": 1},
        {"basis_memory": "1"},
        {"backend": 1},
        {"progress": "bar"},
    ],
)
def test_a_setting_of_another_type_is_a_type_error_that_names_it(case, options):
    with pytest.raises(TypeError, match=f"{next(iter(options))}="):
        cobre.train(case, **{"bound": 0.0, **options})


def test_errors_have_the_fields_that_a_program_acts_on(case):
    for workers in [1, 2]:
        with pytest.raises(cobre.ValidationError) as caught:
            cobre.train(case, bound=0.0, risk="cvar:0.5,0.5", stop="statistical:9", num_workers=workers)
        assert (caught.value.kind, caught.value.key, caught.value.value) == ("usage", "stop", "statistical:9")
        assert caught.value.rank is None
    with pytest.raises(TypeError, match="no field"):
        cobre.CobreError("a", unknown=1)


def test_numbers_and_overrides_beyond_all_measure_are_refused(case):
    with pytest.raises(cobre.ValidationError, match="bound: a finite number"):
        cobre.train(case, bound=10**5000)
    deep: dict = {}
    inner = deep
    for _ in range(5000):
        inner["a"] = inner = {}
    with pytest.raises(cobre.ValidationError, match="config_overrides"):
        cobre.train(case, bound=0.0, config_overrides=deep)


def test_a_setting_that_does_not_exist_is_a_type_error(case):
    with pytest.raises(TypeError):
        cobre.train(case, bound=0.0, unknown=1)


def test_output_that_cannot_be_written_is_an_io_error(case, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(cobre.IOError, match="file"):
        cobre.train(case, bound=0.0, iterations=2, output=tmp_path / "file" / "below")
    with pytest.raises(cobre.WorkerError) as caught:
        cobre.train(case, bound=0.0, iterations=2, output=tmp_path / "file" / "below", num_workers=2)
    assert isinstance(caught.value.inner, cobre.IOError)


def test_a_program_without_answer_is_a_solver_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cobre.SolverError) as caught:
        cobre.train(infeasible(), iterations=2)
    assert caught.value.node == "first"
    assert caught.value.opening == 1
    assert os.path.exists(caught.value.file)


def test_a_workers_error_is_inside_the_worker_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cobre.WorkerError) as caught:
        cobre.train(infeasible(), iterations=2, num_workers=2)
    assert isinstance(caught.value.inner, cobre.SolverError)
    assert caught.value.inner.node == "first"
    assert caught.value.__cause__ is caught.value.inner
    assert caught.value.exit_code == 1


def test_errors_can_be_pickled():
    for error in [
        cobre.CobreError("a", kind="usage", backend="tcp"),
        cobre.ValidationError("a", findings=["b", "c"]),
        cobre.SolverError("a", node="n", opening=2, file="f"),
        cobre.WorkerError("a", rank=2, exit_code=-9, inner=cobre.IOError("b")),
    ]:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)
        assert {**again.__dict__, "inner": 0} == {**error.__dict__, "inner": 0}
        assert isinstance(again, cobre.CobreError)


@pytest.mark.parametrize("backend", ["shm", "tcp"])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_worker_is_named(case, backend, victim):
    killed = []

    def kill(told: cobre.Progress) -> None:
        if told.iteration == 2 and not killed:
            os.kill(worker_pid(victim), signal.SIGKILL)
            killed.append(time.monotonic())

    with pytest.raises(cobre.WorkerError) as caught:
        cobre.train(case, bound=0.0, iterations=10**6, num_workers=3, backend=backend, progress=kill)
    assert time.monotonic() - killed[0] < 30.0
    assert (caught.value.rank, caught.value.exit_code, caught.value.inner) == (victim, -9, None)
    assert "SIGKILL" in str(caught.value)
    assert eventually(lambda: not started())


@pytest.mark.filterwarnings("always")
def test_workers_that_lose_one_start_again_from_the_checkpoint(case, tmp_path):
    options = {"bound": 0.0, "iterations": 300, "forward_passes": 3, "num_workers": 2}
    whole = cobre.train(case, **options)
    killed = []

    # Workers are ahead of what is told: where the second run resumes is not known beforehand, and progress of the first
    # arrives after its worker was killed, too.
    def kill(told: cobre.Progress) -> None:
        if told.iteration >= 5 and told.worker_id == 0 and len(killed) < 2:
            for pid in worker_pids(1):
                if pid not in killed:
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)

    again = {"output": tmp_path / "out", "checkpoint": "iterations:2", "progress": kill}
    with pytest.warns(UserWarning, match="SIGKILL.*starting again.* 1 more retries"):
        result = cobre.train(case, **options, **again, retries=3)
    assert len(killed) == 2
    assert (result.policy_sha256, result.iterations) == (whole.policy_sha256, 300)
    assert result.resumed_from is not None and result.resumed_from >= 2
    killed.clear()
    # More iterations than workers end with before they are killed, on a busy machine too.
    options["iterations"] = 10**6
    with pytest.raises(cobre.WorkerError, match="SIGKILL"):
        cobre.train(case, **options, **{**again, "output": tmp_path / "other"}, retries=1)
    assert len(killed) == 2


def test_what_another_try_does_not_help_is_not_tried_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cobre.WorkerError) as caught:
        cobre.train(infeasible(), iterations=2, num_workers=2, output="out", retries=5)
    assert isinstance(caught.value.inner, cobre.SolverError) and not caught.value.lost


def test_several_ranks_of_an_mpi_launcher_do_not_train_over_each_other(case, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "4")
    for workers in [1, 2]:
        with pytest.raises(cobre.CommunicationError, match="an MPI launcher started 4 ranks"):
            cobre.train(case, bound=0.0, iterations=2, num_workers=workers)
    assert cobre.train(case, bound=0.0, iterations=2, backend="local").iterations == 2
    assert cobre.train(case, bound=0.0, iterations=2, num_workers=2, backend="shm").iterations == 2
    monkeypatch.setenv("COBRE_COMM_BACKEND", "local")
    assert cobre.train(case, bound=0.0, iterations=2).iterations == 2


def test_numpy_is_found_at_import_and_not_at_the_first_array(case):
    run = script(
        "import sys, cobre, numpy\n"
        "def interrupted(version): raise KeyboardInterrupt\n"
        "numpy.lib.NumpyVersion = interrupted\n"
        "print(cobre.train(sys.argv[1], bound=0.0, iterations=2).policy.cuts['intercept'].shape)\n",
        case,
    )
    assert run.communicate(timeout=60) == ("(6,)\n", "")
    run = script("import sys\nsys.modules['numpy'] = None\ntry: import cobre\nexcept ImportError: print('no numpy')\n")
    assert run.communicate(timeout=60) == ("no numpy\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_start_method_of_multiprocessing_does_not_matter(case, method):
    run = script(
        "import multiprocessing, sys, cobre\n"
        "multiprocessing.set_start_method(sys.argv[2])\n"
        "print(cobre.train(sys.argv[1], bound=0.0, iterations=2, num_workers=2).iterations)\n",
        case,
        method,
    )
    assert run.communicate(timeout=60) == ("2\n", "")


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_cleanly_and_the_interpreter_goes_on(case, workers, tmp_path):
    run = script(
        "import sys, cobre\n"
        "said = []\n"
        "def tell(told):\n"
        "    if not said: said.append(print('training'))\n"
        "try:\n"
        "    cobre.train(sys.argv[1], bound=0.0, iterations=10**6, num_workers=int(sys.argv[2]),\n"
        "                progress=tell, output=sys.argv[3])\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "print(cobre.train(sys.argv[1], bound=0.0, iterations=3, num_workers=2).iterations)\n",
        case,
        str(workers),
        str(tmp_path / "out"),
    )
    assert run.stdout.readline() == "training\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=90)
    assert (out, err, run.returncode) == ("interrupted\n3\n", "", 0)
    # What there was by then is saved, complete.
    assert json.loads((tmp_path / "out/policy/manifest.json").read_text())["iterations"] >= 1
    assert json.loads((tmp_path / "out/run.json").read_text())["stop_reason"] == "interrupted"


def test_ctrl_c_while_workers_start_ends_them_at_once_and_without_a_word(case):
    for delay in [0.0, 0.02, 0.1, 0.3, 0.6]:
        run = script(
            "import sys, cobre\n"
            "try: cobre.train(sys.argv[1], bound=0.0, iterations=10**6, num_workers=3)\n"
            "except KeyboardInterrupt: print('interrupted')\n",
            case,
        )
        assert eventually(lambda: any("COBRE_LAUNCH_RANK" in of_one for of_one in started().values()))
        time.sleep(delay)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        assert (out, err) == ("interrupted\n", ""), delay
        assert eventually(lambda: not started())


@pytest.mark.parametrize("how", ["argument", "stdin", "file"])
def test_an_unguarded_script_starts_workers_once(case, how, tmp_path):
    text = (
        "import sys, cobre\n"
        "print('once')\n"
        "print(cobre.train(sys.argv[-1], bound=0.0, iterations=3, num_workers=2).iterations)\n"
    )
    file = tmp_path / "unguarded.py"
    file.write_text(text)
    words = {"argument": ["-c", text], "stdin": ["-"], "file": [str(file)]}[how]
    run = subprocess.run(
        [sys.executable, *words, case], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.stdout, run.stderr) == ("once\n3\n", "")


def test_workers_import_nothing_from_the_working_directory(case, tmp_path):
    for name in ["numpy", "struct", "pickle", "cobre"]:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    text = "import sys, cobre\nprint(cobre.train(sys.argv[1], bound=0.0, iterations=3, num_workers=2).iterations)\n"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/run.py").write_text(text)
    for flags in [[], ["-I"]]:
        run = subprocess.run(
            [sys.executable, *flags, "scripts/run.py", case],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (run.stdout, run.stderr) == ("3\n", "")


def test_workers_find_the_package_where_the_parent_did(case, tmp_path):
    site = os.path.dirname(os.path.dirname(cobre.__file__))
    (tmp_path / "site").symlink_to(site)
    # -S: the interpreter itself finds nothing but the standard library.
    run = subprocess.run(
        [sys.executable, "-S", "-"],
        input=f"import sys\nsys.path.append({str(tmp_path / 'site')!r})\nimport cobre\n"
        f"print(cobre.train({case!r}, bound=0.0, iterations=3, num_workers=2).iterations)\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("3\n", "")


def test_a_working_directory_that_is_gone_is_told(case, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert cobre.train(case, bound=0.0, iterations=2, num_workers=2).iterations == 2
    for options in [{"case": "here.sof.json"}, {"case": case, "output": "out"}]:
        with pytest.raises(cobre.IOError, match="working directory is gone"):
            cobre.train(**options, bound=0.0)


def test_workers_that_cannot_have_their_pipes_are_an_io_error(case):
    descriptors = len(os.listdir("/proc/self/fd"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors + 10, limits[1]))
    try:
        with pytest.raises(cobre.IOError, match="cannot start workers: Too many open files"):
            cobre.train(case, bound=0.0, iterations=2, num_workers=40)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert cobre.train(case, bound=0.0, iterations=2, num_workers=2).iterations == 2


def test_workers_die_with_the_parent(case):
    run = script(
        "import sys, cobre\n"
        "cobre.train(sys.argv[1], bound=0.0, iterations=10**6, num_workers=3,\n"
        "            progress=lambda told: print(told.iteration))\n",
        case,
    )
    run.stdout.readline()
    assert len(started()) >= 4
    run.kill()
    run.communicate(timeout=60)
    assert eventually(lambda: not started()), started()
