"""Case directories, what overrides their config.json, and going on from a checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import cobre
import numpy as np
import pytest
from conftest import ROOT, script

CASE = ROOT / "examples/one-reservoir"
FEW = {"training": {"stopping_rules": [{"type": "iteration_limit", "limit": 8}]}}


def command(program: str, *words: str) -> dict:
    """What the command says."""
    line = subprocess.run(
        [program, "run", *words, "--json", "--quiet"], check=True, capture_output=True, text=True
    ).stdout
    return json.loads(line)


@pytest.fixture(scope="session")
def told(program, tmp_path_factory) -> tuple[dict, Path]:
    output = tmp_path_factory.mktemp("command")
    return command(program, str(CASE), "--iterations=8", f"--output={output}"), output


@pytest.mark.parametrize(
    ("workers", "backend"),
    [(1, "auto"), (2, "shm"), (2, "tcp"), (4, "shm"), (4, "tcp")],
)
def test_a_case_gives_the_bits_of_the_command(told, tmp_path, workers, backend):
    line, directory = told
    result = cobre.train(
        CASE, config_overrides=FEW, num_workers=workers, backend=backend, output=tmp_path / "out"
    )
    assert (result.policy_sha256, result.bound) == (line["policy_sha256"], line["bound"])
    assert (result.estimate.mean, result.estimate.paths) == (line["estimate"]["mean"], 200)
    assert (result.iterations, result.lp_solves) == (8, line["lp_solves"])
    for file in ["training/convergence.parquet", "policy/cuts.parquet", "simulation/stages.parquet"]:
        assert (tmp_path / "out" / file).read_bytes() == (directory / file).read_bytes(), file


@pytest.mark.parametrize("name", ["one-reservoir", "cascade"])
def test_a_case_as_it_is_has_the_answer_it_is_published_with(program, name):
    case = ROOT / "examples" / name
    result = cobre.train(case)
    expected = json.loads((case / "expected.json").read_text())
    assert result.bound == pytest.approx(expected["bound"], rel=expected["relative_tolerance"])
    assert result.policy_sha256 == command(program, str(case))["policy_sha256"]


def test_arguments_and_overrides_mean_the_same():
    one = cobre.train(CASE, iterations=5, forward_passes=2, seed=9, cut_selection="none", simulate=0)
    config = {
        "training": {
            "forward_passes": np.int64(2),
            "stopping_rules": [{"type": "iteration_limit", "limit": 5}],
            "scenario_source": {"seed": 9},
            "cut_selection": {"enabled": False},
        },
        "simulation": {"enabled": False},
    }
    other = cobre.train(CASE, config_overrides=config)
    assert one.policy_sha256 == other.policy_sha256
    assert other.estimate.source == "training"
    # An argument comes before an override.
    both = cobre.train(CASE, config_overrides={**config, "training": {"forward_passes": 3}}, forward_passes=2,
                       iterations=5, seed=9, cut_selection="none")
    assert both.policy_sha256 == one.policy_sha256


def test_overrides_change_the_model_too():
    with_noise = {"training": {**FEW["training"], "tree_seed": 7}}
    one = cobre.train(CASE, config_overrides=FEW, simulate=0)
    other = cobre.train(CASE, config_overrides=with_noise, simulate=0)
    assert one.bound != other.bound
    loaded = cobre.load(CASE, config_overrides=with_noise)
    assert cobre.train(loaded, simulate=0).policy_sha256 == other.policy_sha256


@pytest.mark.parametrize("workers", [1, 2])
def test_wrong_overrides_are_all_told(workers):
    wrong = {"training": {"forward_pases": 3, "forward_passes": -1}, "moddeling": {}}
    with pytest.raises(cobre.ValidationError) as caught:
        cobre.train(CASE, config_overrides=wrong, num_workers=workers)
    text = "\n".join(caught.value.findings)
    assert "training.forward_pases: unknown key" in text
    assert "training.forward_passes: " in text and "moddeling: unknown key" in text
    assert "overrides" in text
    assert cobre.validate(CASE, config_overrides=wrong).findings == caught.value.findings


def test_overrides_need_a_config(case):
    with pytest.raises(cobre.ValidationError, match="config.json"):
        cobre.train(case, bound=0.0, config_overrides=FEW)
    with pytest.raises(cobre.ValidationError, match="config.json"):
        cobre.train(cobre.Problem(bound=0.0), config_overrides=FEW)
    with pytest.raises(TypeError, match="config_overrides"):
        cobre.train(CASE, config_overrides="fast")
    with pytest.raises(cobre.ValidationError, match="JSON"):
        cobre.train(CASE, config_overrides={"training": {"forward_passes": float("nan")}})
    with pytest.raises(cobre.ValidationError, match="JSON"):
        cobre.train(CASE, config_overrides={"training": object()})


def test_a_case_shows_what_it_has():
    case = cobre.load(CASE)
    assert case.settings == {"forward_passes": 4, "seed": 42, "simulate": 200}
    assert case.stages == 12 and len(case.nodes) == 12
    assert all(isinstance(text, str) for text in case.warnings)
    assert cobre.validate(CASE).warnings == case.warnings


def test_a_wrong_case_tells_all_that_is_wrong(tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(CASE, broken)
    (broken / "penalties.json").unlink()
    (broken / "system/hydros.json").write_text("[")
    found = cobre.validate(broken)
    assert not found
    assert any(text.startswith("penalties.json: ") for text in found.findings)
    assert any(text.startswith("system/hydros.json: ") for text in found.findings)
    with pytest.raises(cobre.ValidationError, match="config.json"):
        cobre.train(tmp_path)


def test_a_case_is_simulated_on_as_many_paths_as_it_says():
    trained = cobre.train(CASE, config_overrides=FEW)
    tried = cobre.simulate(CASE, trained)
    assert len(tried.values) == 200
    assert tried.estimate == trained.estimate


@pytest.mark.parametrize(("before", "after"), [((1, "auto"), (2, "shm")), ((2, "tcp"), (1, "auto"))])
def test_a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(tmp_path, before, after):
    def stop(told: cobre.Progress) -> None:
        if told.iteration == 3:
            raise LookupError("enough")

    def run(team, iterations, **options) -> cobre.TrainingResult:
        workers, backend = team
        return cobre.train(
            CASE, iterations=iterations, num_workers=workers, backend=backend, output=tmp_path / "out", **options
        )

    # Far more iterations than workers make before they hear of it.
    many = 600
    with pytest.raises(LookupError):
        run(before, many, progress=stop)
    # An unfinished run is not lost by accident.
    with pytest.raises(cobre.CobreError, match="resume"):
        run((1, "auto"), many)
    resumed = run(after, many, resume=True)
    whole = cobre.train(CASE, iterations=many)
    assert resumed.resumed_from in range(3, many) and whole.resumed_from is None
    assert resumed.policy_sha256 == whole.policy_sha256
    assert resumed.estimate == whole.estimate
    assert resumed.iterations == many


def test_resuming_without_a_checkpoint_starts_from_the_beginning_and_says_so(tmp_path):
    with pytest.warns(UserWarning, match="no checkpoint"):
        result = cobre.train(CASE, iterations=3, output=tmp_path / "out", resume=True)
    assert result.resumed_from is None
    with pytest.raises(cobre.ValidationError, match="output"):
        cobre.train(CASE, iterations=3, resume=True)
    with pytest.raises(cobre.ValidationError, match="checkpoint"):
        cobre.train(CASE, iterations=3, output=tmp_path / "out", checkpoint="daily")
    with pytest.raises(cobre.ValidationError, match="in output: give one"):
        cobre.train(CASE, iterations=3, checkpoint="iterations:1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cobre.train(CASE, iterations=3, output=tmp_path / "other")


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_a_checkpoint_to_go_on_from(tmp_path, workers):
    out = str(tmp_path / "out")
    run = script(
        "import sys, cobre\n"
        "said = []\n"
        "def tell(told):\n"
        "    if not said: said.append(print('training'))\n"
        "cobre.train(sys.argv[1], iterations=10**6, num_workers=int(sys.argv[2]), progress=tell,\n"
        "            output=sys.argv[3], checkpoint='minutes:60')\n",
        str(CASE),
        str(workers),
        out,
    )
    assert run.stdout.readline() == "training\n"
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=90)
    assert run.returncode == -signal.SIGINT
    reached = json.loads((tmp_path / "out/policy/manifest.json").read_text())["iterations"]
    resumed = cobre.train(CASE, iterations=reached + 3, output=out, resume=True, simulate=0)
    assert resumed.resumed_from == reached
    assert resumed.policy_sha256 == cobre.train(CASE, iterations=reached + 3, simulate=0).policy_sha256


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_a_simulation(tmp_path, workers):
    run = script(
        "import sys, cobre\n"
        "case, workers = sys.argv[1], int(sys.argv[2])\n"
        "policy = cobre.train(case, iterations=3, simulate=0)\n"
        "said = []\n"
        "def tell(done, all):\n"
        "    if not said: said.append(print('simulating'))\n"
        "try: cobre.simulate(case, policy, paths=10**7, num_workers=workers, progress=tell, output=sys.argv[3])\n"
        "except KeyboardInterrupt: print('interrupted')\n"
        "print(len(cobre.simulate(case, policy, paths=10, num_workers=workers).values))\n",
        str(CASE),
        str(workers),
        str(tmp_path / "out"),
    )
    assert run.stdout.readline() == "simulating\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=90)
    assert (out, err, run.returncode) == ("interrupted\n10\n", "", 0)
    # Nothing half-written has the name of something whole.
    assert os.listdir(tmp_path / "out/simulation") == []


def test_results_of_a_simulation_are_shown_and_drawn():
    import matplotlib

    matplotlib.use("Agg")
    trained = cobre.train(CASE, config_overrides=FEW)
    tried = cobre.simulate(CASE, trained, paths=50)
    assert "paths" in repr(tried) and "<table>" in tried._repr_html_()
    assert tried.plot_values().get_xlabel() == "cost"
    assert len(trained.plot_timings().get_lines()) == 4


def test_a_damaged_table_is_a_validation_error_whatever_byte_is_wrong(tmp_path):
    case = tmp_path / "case"
    shutil.copytree(CASE, case)
    table = next((case / "scenarios").glob("*.parquet"))
    whole = table.read_bytes()
    for place in range(0, len(whole), 13):
        table.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        # A byte that is wrong may go unnoticed; anything but a ValidationError would end this test.
        cobre.validate(case)


def test_limits_are_those_of_the_command(tmp_path):
    passes = {"training": {"forward_passes": 10_000_000}}
    with pytest.raises(cobre.ValidationError, match="forward_passes: a whole number from 1 to 100000"):
        cobre.train(CASE, config_overrides=passes)
    with pytest.raises(cobre.ValidationError, match="simulate=100000000: a whole number of at most 10000000"):
        cobre.train(CASE, config_overrides=FEW, simulate=100_000_000)
    pipe = tmp_path / "pipe.sof.json"
    os.mkfifo(pipe)
    with pytest.raises(cobre.IOError, match="it is a pipe; a file is expected"):
        cobre.load(pipe, bound=0.0)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("options", [{}, {"checkpoint": "none"}, {"resume": True}])
def test_files_of_others_in_the_way_of_results_are_refused_and_stay(tmp_path, workers, options):
    mine = tmp_path / "out/checkpoint/deep/model.pt"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    with pytest.raises(cobre.CobreError, match="out/checkpoint holds deep") as refused:
        cobre.train(CASE, iterations=2, num_workers=workers, output=tmp_path / "out", **options)
    assert isinstance(getattr(refused.value, "inner", refused.value), cobre.ValidationError)
    assert mine.read_text() == "precious"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["checkpoint"]


def test_a_policy_is_saved_over_a_policy_and_over_nothing_else(tmp_path):
    policy = cobre.train(CASE, iterations=2).policy
    for _ in range(2):
        policy.save(tmp_path / "policy")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/cuts.parquet").write_text("precious")
    with pytest.raises(cobre.ValidationError, match="mine/cuts.parquet"):
        policy.save(tmp_path / "mine")
    assert (tmp_path / "mine/cuts.parquet").read_text() == "precious"


def test_a_limit_on_the_size_of_files_is_an_io_error(tmp_path):
    limited = (
        "import cobre, resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: cobre.train(sys.argv[1], iterations=9, output=sys.argv[2], checkpoint='iterations:1')\n"
        "except cobre.IOError as error: print(error)\n"
    )
    words = [sys.executable, "-c", limited, str(CASE), str(tmp_path / "out")]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "File too large" in ended.stdout


def test_results_inside_the_case_are_refused_as_on_the_command_line(tmp_path):
    case = tmp_path / "case"
    shutil.copytree(CASE, case)
    for workers in (1, 2):
        with pytest.raises(cobre.ValidationError, match="is inside the case"):
            cobre.train(case, config_overrides=FEW, num_workers=workers, output=case / "results")
    policy = cobre.train(case, config_overrides=FEW)
    with pytest.raises(cobre.ValidationError, match="is inside the case"):
        cobre.simulate(case, policy, output=case)
    assert not (case / "results").exists()
