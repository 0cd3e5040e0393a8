"""Policies: saved, loaded, tried."""

from __future__ import annotations

import pickle

import cobre
import numpy as np
import pytest

OPTIONS = {"bound": 0.0, "iterations": 15, "seed": 5, "forward_passes": 2}


@pytest.fixture
def trained(case, tmp_path) -> cobre.TrainingResult:
    return cobre.train(case, **OPTIONS, simulate=300, output=tmp_path / "run")


def test_a_policy_is_saved_and_loaded_with_every_bit(trained, tmp_path):
    policy = trained.policy
    assert policy.sha256 == trained.policy_sha256
    policy.save(tmp_path / "saved")
    for path in [tmp_path / "saved", tmp_path / "run", tmp_path / "run/policy"]:
        again = cobre.Policy.load(path)
        assert again == policy and hash(again) == hash(policy)
        assert (again.sense, again.seed, again.bound) == ("min", 5, trained.bound)
        for name in policy.cuts:
            assert list(again.cuts[name]) == list(policy.cuts[name])
    for file in ["manifest.json", "cuts.parquet"]:
        assert (tmp_path / "saved" / file).read_bytes() == (tmp_path / "run/policy" / file).read_bytes()
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_policy_is_not_replaced_by_the_run_that_begins_with_it(trained, case, tmp_path):
    before = (tmp_path / "run/policy/cuts.parquet").read_bytes()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for start in [trained, tmp_path / "run", str(tmp_path / "run/policy"), tmp_path / "link"]:
        with pytest.raises(cobre.ValidationError, match="another output"):
            cobre.train(case, **OPTIONS, warm_start=start, output=tmp_path / "run")
    assert (tmp_path / "run/policy/cuts.parquet").read_bytes() == before
    cobre.train(case, **OPTIONS, warm_start=tmp_path / "run", output=tmp_path / "further")


@pytest.mark.parametrize(("workers", "backend"), [(1, "auto"), (2, "shm"), (2, "tcp")])
def test_simulating_a_policy_gives_the_bits_of_the_run_that_made_it(trained, case, tmp_path, workers, backend):
    loaded = cobre.Policy.load(tmp_path / "run")
    tried = cobre.simulate(
        case, loaded, paths=300, bound=0.0, num_workers=workers, backend=backend, output=tmp_path / "again"
    )
    assert tried.estimate == trained.estimate
    assert tried.validation == trained.validation
    assert tried.values.mean() == pytest.approx(tried.estimate.mean)
    assert len(tried.values) == 300
    for file in ["paths", "stages", "states", "validation"]:
        name = f"simulation/{file}.parquet"
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "run" / name).read_bytes(), name


def test_another_seed_takes_other_paths(trained, case):
    one = cobre.simulate(case, trained, paths=50, bound=0.0)
    other = cobre.simulate(case, trained, paths=50, bound=0.0, seed=99)
    assert not np.array_equal(one.values, other.values)


def test_simulation_tells_how_far_it_is(trained, case):
    told: list[tuple[int, int]] = []
    cobre.simulate(case, trained, paths=50, bound=0.0, progress=lambda done, all: told.append((done, all)))
    assert told[-1] == (50, 50)


def test_the_future_is_worth_what_the_cuts_say(trained):
    policy, state = trained.policy, {"upper": 20.0, "lower": 10.0}
    cuts = policy.cuts
    here = [name == "now" for name in cuts["node"]]
    values = cuts["intercept"] + 20.0 * cuts["slope:upper"] + 10.0 * cuts["slope:lower"]
    assert policy.future_value("now", state) == pytest.approx(values[here].max())
    assert policy.future_value("wet4", state) == 0.0
    with pytest.raises(cobre.ValidationError, match="no node here; there are now"):
        policy.future_value("here", state)
    for wrong in [{"upper": 20.0}, {**state, "third": 1.0}]:
        with pytest.raises(cobre.ValidationError, match="each of upper, lower"):
            policy.future_value("now", wrong)


def test_a_policy_of_another_problem_is_refused(trained):
    problem = cobre.Problem(bound=0.0)
    problem.state("other", 0.0)
    program = problem.program()
    program.state("other")
    problem.node("only", program)
    with pytest.raises(cobre.ValidationError, match="states"):
        cobre.simulate(problem, trained, paths=1)


def test_damaged_files_are_refused(trained, tmp_path):
    trained.policy.save(tmp_path / "saved")
    with pytest.raises(cobre.IOError, match="nowhere"):
        cobre.Policy.load(tmp_path / "nowhere")
    manifest = tmp_path / "saved/manifest.json"
    whole = manifest.read_text()
    manifest.write_text(whole.replace(trained.policy_sha256, "0" * 64))
    with pytest.raises(cobre.IOError, match="fingerprint"):
        cobre.Policy.load(tmp_path / "saved")
    manifest.write_text("{")
    with pytest.raises(cobre.IOError, match="manifest"):
        cobre.Policy.load(tmp_path / "saved")
    manifest.write_text(whole)
    cuts = tmp_path / "saved/cuts.parquet"
    cuts.write_bytes(cuts.read_bytes()[:-20])
    with pytest.raises(cobre.IOError, match="cuts.parquet"):
        cobre.Policy.load(tmp_path / "saved")


def test_a_revenue_is_simulated_too():
    problem = cobre.Problem("max", bound=100.0)
    problem.state("stock", 4.0)
    program = problem.program()
    before, after = program.state("stock")
    sold = program.column("sold", cost=1.0)
    program.row("balance", {after: 1.0, before: -1.0, sold: 1.0}, equals=0.0)
    prices = [cobre.Opening(costs={"sold": price}) for price in (1.0, 2.0)]
    problem.node("now", program, prices)
    problem.node("then", program, prices, after="now")
    result = cobre.train(problem, iterations=20, simulate=100)
    tried = cobre.simulate(problem, result, paths=100)
    assert tried.estimate == result.estimate
    # Sell at 2 now, else wait: 4 × (½ × 2 + ½ × 1.5).
    assert result.bound == pytest.approx(7.0)
