"""Policies simulated on paths that the caller gives."""

from __future__ import annotations

from pathlib import Path

import cobre
import numpy as np
import pytest
from conftest import ROOT
from test_problem import newsvendor

CASCADE = ROOT / "examples/cascade"
STAGES, PLANTS = 12, 2


@pytest.fixture(scope="module")
def trained() -> cobre.TrainingResult:
    return cobre.train(CASCADE, iterations=5, simulate=4)


def inflows(tables: object, paths: int) -> np.ndarray:
    return np.asarray(tables["hydros"]["inflow_m3s"]).reshape(paths, STAGES, PLANTS)


def test_inflows_are_what_happens_and_drawn_ones_cost_the_same(trained):
    drawn = inflows(trained.tables, 4)
    again = cobre.simulate(CASCADE, trained, paths=drawn, labels=["a", "b", "c", "d"])
    assert np.allclose(inflows(again.tables, 4), drawn, rtol=1e-9, atol=1e-9)
    assert np.allclose(again.values, trained.values, rtol=1e-9)
    assert list(again.tables["paths"]["label"]) == ["a", "b", "c", "d"]
    dry = cobre.simulate(CASCADE, trained, paths=0.5 * drawn)
    assert (dry.values > again.values).all()


def test_openings_replay_paths_with_the_same_bits(trained):
    openings = np.asarray(trained.tables["stages"]["opening"]).reshape(4, STAGES) - 1
    again = cobre.simulate(CASCADE, trained, paths=openings)
    assert (again.values == trained.values).all()


def test_a_built_problem_takes_openings():
    problem = newsvendor()
    policy = cobre.train(problem, iterations=10)
    tried = cobre.simulate(problem, policy, paths=[[0, 0], [0, 1]], labels=["low", "high"])
    assert tried.values == pytest.approx([3.0, 3.0])
    assert list(tried.tables["paths"]["label"]) == ["low", "high"]


def test_a_built_problem_takes_what_happens():
    problem = newsvendor()
    policy = cobre.train(problem, iterations=10)

    def path(demand: float) -> list[tuple[str, cobre.Opening]]:
        return [("buy", cobre.Opening()), ("sell", cobre.Opening(rows={"demand": demand}))]

    # Three units are bought at 1; each that lacks costs 3.
    tried = cobre.simulate(problem, policy, paths=[path(1.0), path(5.5)], labels=["few", "many"])
    assert tried.values == pytest.approx([3.0, 3.0 + 3 * 2.5])
    assert list(tried.tables["paths"]["label"]) == ["few", "many"]
    again = cobre.simulate(problem, policy, paths=[path(1.0), path(5.5)], num_workers=2)
    assert (again.values == tried.values).all()
    for paths, message in [
        ([[("rent", cobre.Opening())]], "rent"),
        ([[("buy", cobre.Opening(rows={"supply": 1.0}))]], "supply"),
        ([[("buy", cobre.Opening()), ("buy", cobre.Opening())]], "does not follow the node before it"),
    ]:
        with pytest.raises(cobre.ValidationError, match=message):
            cobre.simulate(problem, policy, paths=paths)
    with pytest.raises(cobre.ValidationError, match="for a cobre.Problem"):
        cobre.simulate(CASCADE, policy, paths=[path(1.0)])


def test_a_file_of_scenarios_is_simulated(case, tmp_path: Path):
    policy = cobre.train(case, bound=0.0, iterations=3)
    with pytest.raises(cobre.ValidationError, match="scenarios.json"):
        (tmp_path / "scenarios.json").write_text("{}")
        cobre.simulate(case, policy, bound=0.0, paths=tmp_path / "scenarios.json")


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (np.zeros((2, 3, 4)), "paths × 12 stages × 2 hydro plants are expected"),
        (np.full((1, STAGES, PLANTS), np.nan), "is no inflow"),
        ([[0] * 5], "path 1 has 5 openings for 12 stages"),
        ([[999] * STAGES], "there is no opening 999"),
        (np.zeros((2, 2)), "an array of inflows"),
        ([[1, 2], [3]], "paths"),
    ],
)
def test_wrong_paths_are_named(trained, paths, message):
    with pytest.raises(cobre.ValidationError, match=message):
        cobre.simulate(CASCADE, trained, paths=paths)
    with pytest.raises(cobre.ValidationError, match="labels"):
        cobre.simulate(CASCADE, trained, paths=3, labels=["a"])
