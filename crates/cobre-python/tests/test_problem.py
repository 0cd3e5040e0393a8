"""Loading problems and building them in code."""

from __future__ import annotations

import cobre
import pytest


def newsvendor(price: float = 1.0) -> cobre.Problem:
    """Buy before demand is known; lacking a unit costs 3."""
    problem = cobre.Problem(bound=0.0)
    stock = problem.state("stock", 0.0)
    buy = problem.program()
    before, after = buy.state(stock, upper=10.0)
    bought = buy.column("bought", cost=price)
    buy.row("balance", {after: 1.0, before: -1.0, bought: -1.0}, equals=0.0)
    sell = problem.program()
    before, after = sell.state(stock)
    sold = sell.column("sold")
    short = sell.column("short", cost=3.0)
    sell.row("balance", {after: 1.0, before: -1.0, sold: 1.0}, equals=0.0)
    sell.row("demand", {sold: 1.0, short: 1.0}, equals=0.0)
    problem.node("buy", buy)
    problem.node("sell", sell, [cobre.Opening(rows={"demand": demand}) for demand in (1.0, 3.0)], after="buy")
    return problem


def test_a_built_problem_has_the_answer_of_pencil_and_paper():
    # At price 1 every unit up to the highest demand pays, at price 2 only that up to the lowest.
    assert cobre.train(newsvendor(1.0), iterations=20).bound == pytest.approx(3.0)
    assert cobre.train(newsvendor(2.0), iterations=20).bound == pytest.approx(5.0)


def test_workers_solve_a_built_problem_with_the_same_bits():
    alone = cobre.train(newsvendor(), iterations=10)
    assert cobre.train(newsvendor(), iterations=10, num_workers=2).policy_sha256 == alone.policy_sha256


def test_openings_may_change_anything():
    problem = cobre.Problem("max", bound=100.0)
    problem.state("idle", 0.0)
    program = problem.program()
    before, after = program.state("idle")
    made = program.column("made", cost=1.0, upper=1.0)
    program.row("keep", {after: 1.0, before: -1.0}, equals=0.0)
    program.row("limit", {made: 1.0}, upper=4.0)
    program.constant(0.5)
    openings = [
        cobre.Opening(0.25, columns={made: (0.0, 2.0)}),
        cobre.Opening(0.25, columns={made: (0.0, 9.0)}),
        cobre.Opening(0.25, columns={made: (0.0, 9.0)}, coefficients={("limit", made): 2.0}),
        cobre.Opening(0.25, costs={made: 10.0}),
    ]
    problem.node("only", program, openings)
    # 2, 4, 2 and 10 made, a quarter each, and the constant.
    assert cobre.train(problem, iterations=2).bound == pytest.approx(0.25 * (2 + 4 + 2 + 10) + 0.5)


def test_graphs_may_branch():
    problem = newsvendor()
    case = cobre.load(problem)
    assert [node.name for node in case.nodes] == ["buy", "sell"]
    assert case.nodes[0].successors == {"sell": 1.0}
    assert case.nodes[1].probabilities == (0.5, 0.5)
    assert case.start == {"buy": 1.0}
    assert (case.stages, case.openings, case.states) == (2, 3, {"stock": 0.0})
    assert "short" in case.nodes[1].columns


def test_mistakes_in_a_built_problem_are_found():
    problem = cobre.Problem(bound=0.0)
    problem.state("a", 0.0)
    program = problem.program()
    with pytest.raises(cobre.ValidationError, match="no state b"):
        program.state("b")
    program.state("a")
    with pytest.raises(cobre.ValidationError, match="two columns"):
        program.column("a")
    with pytest.raises(cobre.ValidationError, match="no column x"):
        program.row("r", {"x": 1.0})
    problem.node("n", program, [cobre.Opening(0.3), cobre.Opening(0.3)])
    with pytest.raises(cobre.ValidationError, match="no node m"):
        problem.node("o", program, after="m")
    with pytest.raises(cobre.ValidationError, match="probabilit"):
        cobre.train(problem, iterations=1)
    assert not cobre.validate(problem)


def test_a_case_is_loaded_and_trained(case):
    loaded = cobre.load(case, bound=0.0)
    assert (loaded.sense, loaded.stages, loaded.states) == ("min", 4, {"upper": 60.0, "lower": 30.0})
    assert loaded.path == case
    assert loaded.validation_scenarios == 2
    direct = cobre.train(case, bound=0.0, iterations=5)
    assert cobre.train(loaded, iterations=5).policy_sha256 == direct.policy_sha256
    with pytest.raises(AttributeError):
        loaded.sense = "max"


@pytest.mark.parametrize("price", [1e16, float("nan"), float("inf")])
def test_numbers_too_large_to_be_meant_are_refused_with_their_place(price):
    with pytest.raises(cobre.ValidationError, match="the cost of column bought is"):
        cobre.train(newsvendor(price), iterations=1)


def test_bounds_are_infinite_or_can_be_meant():
    problem = cobre.Problem(bound=0.0)
    program = problem.program()
    program.column("free", upper=float("inf"))
    program.row("far", {program.column("x", cost=1.0): 1.0}, lower=1e31)
    problem.node("only", program)
    with pytest.raises(cobre.ValidationError, match=r"node only: row far has a bound of 1e31, beyond ±1e15"):
        cobre.train(problem, iterations=1)
