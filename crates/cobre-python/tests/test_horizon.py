"""The value after the last stage, and the bound from the other side."""

from __future__ import annotations

import json
import math
from pathlib import Path

import cobre
import pytest

OPTIONS = {"bound": 0.0, "iterations": 30, "seed": 7, "forward_passes": 3}


@pytest.mark.parametrize("risk", ["expectation", "cvar:0.5,0.3"])
def test_the_upper_bound_is_above_the_bound(case, risk):
    seen = []
    result = cobre.train(case, **OPTIONS, risk=risk, upper_bound=10, progress=lambda step: seen.append(step.upper_bound))
    assert result.bound <= result.upper_bound <= 1.05 * result.bound
    assert [upper is not None for upper in seen] == [number % 10 == 0 for number in range(1, 31)]
    column = result.convergence["upper_bound"]
    assert [math.isnan(value) for value in column] == [upper is None for upper in seen]
    assert "upper bound" in repr(result)


def test_without_being_asked_for_there_is_no_upper_bound(case):
    result = cobre.train(case, **OPTIONS)
    assert result.upper_bound is None
    with pytest.raises(cobre.ValidationError, match="upper_bound=K"):
        cobre.train(case, **OPTIONS, stop="gap:0.01")


def test_training_ends_when_the_bounds_meet(case):
    options = {**OPTIONS, "iterations": 400}
    result = cobre.train(case, **options, upper_bound=20, stop="gap:0.01")
    assert result.stop_reason == "gap"
    assert result.iterations < 400


def test_cuts_of_sddp_jl_are_a_terminal_value(case, tmp_path):
    without = cobre.train(case, **OPTIONS)
    states = list(without.policy.states)
    slopes = {state: -1.0 for state in states}
    cuts = [{"node": "7", "single_cuts": [{"intercept": 500.0, "coefficients": slopes}]}]
    path = tmp_path / "cuts.json"
    path.write_text(json.dumps(cuts))
    result = cobre.train(case, **OPTIONS, boundary=path, boundary_stage=7)
    assert result.bound > without.bound
    tried = cobre.simulate(case, result.policy, bound=0.0, paths=20, boundary=path, boundary_stage=7)
    assert len(tried.values) == 20
    with pytest.raises(cobre.ValidationError, match="no node 8"):
        cobre.train(case, **OPTIONS, boundary=path, boundary_stage=8)
    with pytest.raises(cobre.ValidationError, match="boundary, the policy"):
        cobre.train(case, **OPTIONS, boundary_stage=7)


def test_a_cyclic_graph_is_trained_and_simulated_with_workers():
    root = Path(__file__).resolve().parents[3]
    problem = root / "examples/seasons.sof.json"
    options = {"bound": 0.0, "iterations": 60, "forward_passes": 4, "seed": 3}
    alone = cobre.train(problem, **options, threads=1)
    # Value iteration gives 39.07345.
    assert 39.0 < alone.bound <= 39.0735
    together = cobre.train(problem, **options, num_workers=2)
    assert together.policy.sha256 == alone.policy.sha256
    tried = cobre.simulate(problem, alone.policy, bound=0.0, paths=40, stages=24)
    assert len(tried.values) == 40
    bounded = cobre.train(problem, **options, upper_bound=20, num_workers=2)
    assert bounded.policy.sha256 == alone.policy.sha256
    assert bounded.upper_bound is not None and 39.0734 <= bounded.upper_bound < 39.5
