"""Tables of simulated paths without files, reports, and one set of names."""

from __future__ import annotations

import os
import pickle

import cobre
import numpy as np
import pyarrow.parquet as parquet
import pytest
from conftest import ROOT

RESERVOIR = ROOT / "examples/one-reservoir"
OPTIONS = {"iterations": 5, "forward_passes": 2, "seed": 3}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A run with files, to compare with."""
    output = tmp_path_factory.mktemp("written") / "out"
    return cobre.train(RESERVOIR, **OPTIONS, simulate=40, output=output)


def check_tables(tables, output) -> None:
    files = sorted((output / "simulation").glob("*.parquet"))
    assert {"paths", "hydros", "thermals", "buses", "costs"} <= set(tables)
    assert sorted(tables) == [file.stem for file in files]
    for file in files:
        frame = parquet.read_table(file)
        table = tables[file.stem]
        assert list(table) == frame.column_names
        for name in table:
            expected = frame[name].to_numpy()
            same = np.array_equal(table[name], expected, equal_nan=expected.dtype.kind == "f")
            assert same, (file, name)


@pytest.mark.parametrize("workers", [1, 2])
def test_simulation_gives_the_tables_of_the_command_without_files(written, tmp_path, monkeypatch, workers):
    from pathlib import Path

    monkeypatch.chdir(tmp_path)
    trained = cobre.train(RESERVOIR, **OPTIONS, simulate=40, num_workers=workers)
    tried = cobre.simulate(RESERVOIR, trained, paths=40, num_workers=workers)
    assert not list(tmp_path.iterdir())
    for result in [trained, tried, written]:
        check_tables(result.tables, Path(written.output))
    assert np.array_equal(trained.values, tried.values)
    assert tried.output is None and trained.output is None
    again = pickle.loads(pickle.dumps(tried))
    assert again.tables["hydros"] == tried.tables["simulation/hydros"] == written.tables["hydros"]


def test_tables_that_are_not_there_are_named():
    result = cobre.train(RESERVOIR, **OPTIONS, simulate=0)
    assert len(result.tables) == 0
    with pytest.raises(KeyError, match="nothing was simulated"):
        result.tables["hydros"]
    with pytest.raises(KeyError, match="no table lightning; there are .*hydros"):
        cobre.simulate(RESERVOIR, result, paths=3).tables["lightning"]
    assert len(cobre.simulate(RESERVOIR, result, paths=3, tables=False).tables) == 0


def test_problems_of_ones_own_have_tables_too(case):
    result = cobre.train(case, bound=0.0, iterations=3, simulate=4)
    assert {"paths", "stages", "states", "controls", "duals"} == set(result.tables)
    assert np.array_equal(result.tables["paths"]["scenario"], [1, 2, 3, 4])


def test_ranks_of_a_job_all_have_the_tables(program):
    from test_jobs import launched

    text = """
import sys, cobre
result = cobre.train(sys.argv[1], iterations=3, simulate=20)
storage = result.tables["hydros"]
comm = cobre.Communicator()
total = comm.allreduce(float(storage["scenario"].sum()))
assert total == comm.size * storage["scenario"].sum() > 0
"""
    done = launched(program, text, RESERVOIR)
    assert (done.returncode, done.stderr) == (0, "")


def test_columns_of_training_have_one_set_of_names(written):
    heard = []
    cobre.train(RESERVOIR, **OPTIONS, progress=heard.append)
    for name in ["convergence", "timings"]:
        frame = parquet.read_table(f"{written.output}/training/{name}.parquet")
        table = getattr(written, name)
        assert list(table) == frame.column_names
        for column in table:
            assert np.array_equal(table[column], frame[column].to_numpy(), equal_nan=True), column
            assert hasattr(heard[0], column)


def test_reports_are_written(written, tmp_path):
    page = cobre.report(written)
    assert page == f"{written.output}/report.html" and "<html" in open(page).read(2000)
    other = cobre.report(written.output, output=tmp_path / "page.html", png=tmp_path / "pictures")
    assert other == str(tmp_path / "page.html") and open(other).read() == open(page).read()
    assert list((tmp_path / "pictures").glob("*.png"))
    with pytest.raises(cobre.ValidationError, match="no files"):
        cobre.report(cobre.simulate(RESERVOIR, written, paths=2))
    with pytest.raises(cobre.CobreError, match="nowhere"):
        cobre.report("/nowhere")


def test_summaries_are_those_of_the_command(written, program):
    import subprocess

    told = subprocess.run([program, "summary", written.output], check=True, capture_output=True, text=True).stdout
    found = cobre.summary(written.output)
    alike = cobre.summary(written)
    for part in ["costs", "storage", "deficit", "marginal_costs"]:
        assert getattr(found, part) == getattr(alike, part)
    lines = {words[0]: words for words in map(str.split, told.splitlines()) if words}
    assert found.costs["kind"][-1] == "all"
    shown = float(lines["all"][1])
    whole = found.costs["mean"][-1]
    assert whole == pytest.approx(written.estimate.mean)
    # The command shows thousands or millions.
    assert any(whole / unit == pytest.approx(shown, abs=6e-4) for unit in [1.0, 1e3, 1e6, 1e9])
    assert found.costs["share"][:-1].sum() == pytest.approx(1.0)
    assert list(found.storage["stage"]) == sorted(set(written.tables["hydros"]["stage"]))
    # Every table that has a stage has its first day, and so has the command.
    assert list(found.storage["start_date"]) == sorted(set(written.tables["hydros"]["start_date"]))
    assert found.storage["start_date"][0] in told
    assert "<table>" in found._repr_html_() and "costs" in repr(found)
    assert found.facts["policy"] == written.policy_sha256
    with pytest.raises(cobre.CobreError, match="nowhere"):
        cobre.summary("/nowhere")


def test_a_record_that_is_none_is_an_error_and_nobody_waits(tmp_path):
    place = tmp_path / "run.json"
    for content in ["[]", '"run"', '{"estimate": 3}', "[" * 100_000, "{"]:
        place.write_text(content)
        with pytest.raises(cobre.ValidationError, match="run.json"):
            cobre.summary(tmp_path)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(cobre.IOError, match="it is no file"):
        cobre.summary(tmp_path)


def test_summaries_need_no_files_and_no_hydro_plants(case):
    found = cobre.summary(cobre.train(case, bound=0.0, iterations=3, simulate=4))
    assert list(found.costs["kind"]) == ["all"] and found.storage is None and found.deficit is None
    assert cobre.summary(cobre.train(case, bound=0.0, iterations=3)).costs is None


def test_bands_are_percentiles_over_scenarios(written):
    hydros = written.tables["hydros"]
    found = cobre.bands(hydros, "storage_hm3")
    frame = hydros.to_pandas().groupby(["stage", "scenario"])["storage_hm3"].sum().groupby("stage")
    assert np.allclose(found["p95"], frame.quantile(0.95)) and np.allclose(found["mean"], frame.mean())
    assert list(found["stage"]) == sorted(set(hydros["stage"]))
    assert list(found["start_date"]) == sorted(set(hydros["start_date"]))
    buses = written.tables["buses"]
    one = buses.where(bus_id=int(buses["bus_id"][0]), scenario=1)
    assert set(one["scenario"]) == {1} and one.num_rows < buses.num_rows
    price = cobre.bands(one, "marginal_cost_per_mwh", combine="mean")
    assert np.allclose(price["p5"], price["p95"])
    drawn = found._repr_html_()
    assert drawn.startswith("<svg") and drawn.count("<polygon") == 2
    assert f">{found['start_date'][0][:7]}</text>" in drawn
    assert pickle.loads(pickle.dumps(found))._repr_html_() == drawn
    for call in [
        lambda: cobre.bands(hydros, "lightning"),
        lambda: hydros.where(lightning=1),
        lambda: cobre.bands(hydros, "storage_hm3", combine="product"),
    ]:
        with pytest.raises(cobre.ValidationError, match="lightning|product"):
            call()
