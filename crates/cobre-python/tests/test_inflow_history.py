"""Inflow models that `cobre fit` estimates, against an estimation written here in NumPy."""

from __future__ import annotations

import datetime
import json
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MONTHS = 12


def generated(years: int, phi: tuple[float, ...], seed: int) -> np.ndarray:
    """Years by months of inflows whose standardised deviations follow an autoregression."""
    rng = np.random.default_rng(seed)
    past = np.zeros(len(phi))
    values = np.empty(MONTHS * (years + 20))
    for place in range(len(values)):
        next_ = past @ np.array(phi) + rng.normal()
        past = np.concatenate([[next_], past[:-1]])
        values[place] = next_
    values = values[MONTHS * 20 :] / values.std()
    season = np.arange(len(values)) % MONTHS
    mean = 100 + 40 * np.cos(2 * np.pi * season / MONTHS)
    return (mean + 0.2 * mean * values).reshape(years, MONTHS)


class Reference:
    """The Yule-Walker equations of each month, over the months of a record in one row."""

    def __init__(self, table: np.ndarray, annual: bool) -> None:
        self.flat = table.ravel()
        self.mean, self.std = table.mean(axis=0), table.std(axis=0)
        self.count = len(table)
        self.season = np.arange(len(self.flat)) % MONTHS
        self.annual = None
        if annual:
            windows = np.lib.stride_tricks.sliding_window_view(self.flat, MONTHS).mean(axis=1)
            self.annual = np.full(len(self.flat), np.nan)
            self.annual[MONTHS - 1 : -1] = windows[:-1]
            by_season = [self.annual[self.season == m] for m in range(MONTHS)]
            self.annual_mean = np.array([np.nanmean(own) for own in by_season])
            self.annual_std = np.array([np.nanstd(own) for own in by_season])
            self.annual_count = [int((~np.isnan(own)).sum()) for own in by_season]

    def rho(self, m: int, k: int) -> float:
        if k == 0:
            return 1.0
        at = np.flatnonzero(self.season == m % MONTHS)
        at = at[at >= k]
        one = self.flat[at] - self.mean[m % MONTHS]
        other = self.flat[at - k] - self.mean[(m - k) % MONTHS]
        value = (one @ other) / len(at) / (self.std[m % MONTHS] * self.std[(m - k) % MONTHS])
        return float(np.clip(value, -1, 1))

    def rho_annual(self, m: int, lag: int) -> float:
        """The annual mean of month m - 1 with month m - lag."""
        own = (m - 1) % MONTHS
        at = np.flatnonzero(self.season == own)
        place = at + 1 - lag
        fits = (place >= 0) & (place < len(self.flat)) & ~np.isnan(self.annual[at])
        one = self.annual[at[fits]] - self.annual_mean[own]
        other = self.flat[place[fits]] - self.mean[(m - lag) % MONTHS]
        divisor = max(self.annual_count[own], self.count)
        return float((one @ other) / divisor / (self.annual_std[own] * self.std[(m - lag) % MONTHS]))

    def matrix(self, m: int, order: int) -> np.ndarray:
        size = order + 1 + (self.annual is not None)
        found = np.eye(size)
        for i in range(order + 1):
            for j in range(i + 1, order + 1):
                found[i, j] = found[j, i] = self.rho(m - i, j - i)
            if self.annual is not None:
                found[i, -1] = found[-1, i] = self.rho_annual(m, i)
        return found

    def solve(self, m: int, order: int) -> tuple[np.ndarray, float]:
        full = self.matrix(m, order)
        phi = np.linalg.solve(full[1:, 1:], full[1:, 0])
        return phi, float(np.sqrt(max(0.0, 1 - phi @ full[1:, 0])))

    def partial(self, m: int, order: int) -> float:
        if self.annual is None:
            return float(self.solve(m, order)[0][order - 1])
        # The correlation of month and lag given the rest, from the inverse of all correlations.
        precision = np.linalg.inv(self.matrix(m, order))
        return float(-precision[0, order] / np.sqrt(precision[0, 0] * precision[order, order]))

    def season_fit(self, m: int, most: int) -> tuple[np.ndarray, float]:
        limit = 1.96 / np.sqrt(self.count)
        orders = [k for k in range(1, most + 1) if abs(self.partial(m, k)) > limit]
        order = max(orders, default=0)
        if self.annual is not None:
            order = min(max(order, 1), most)
        if order == 0:
            return np.empty(0), 1.0
        phi, ratio = self.solve(m, order)
        return (phi, ratio) if phi[0] >= 0 else (np.empty(0), 1.0)

    def lags(self, phi: np.ndarray) -> np.ndarray:
        return phi[:-1] if self.annual is not None and len(phi) else phi

    def fit(self, max_order: int) -> list[tuple[np.ndarray, float]]:
        most = [max_order] * MONTHS
        fits = [self.season_fit(m, max_order) for m in range(MONTHS)]
        while True:
            wrong = [m for m in range(MONTHS) if self.opposes(m, fits)]
            if not wrong:
                return fits
            most[wrong[0]] -= 1
            fits[wrong[0]] = self.season_fit(wrong[0], most[wrong[0]])

    def opposes(self, m: int, fits: list[tuple[np.ndarray, float]]) -> bool:
        """The effect of a unit k months ago, by running the model: negative for some k up to the order."""
        order = len(self.lags(fits[m][0]))
        for back in range(1, order + 1):
            effect = {m - back: 1.0}
            for month in range(m - back + 1, m + 1):
                phi = self.lags(fits[month % MONTHS][0])
                # Lags that reach beyond the order of the month in question do not count.
                terms = [
                    phi[lag - 1]
                    * self.std[month % MONTHS]
                    / self.std[(month - lag) % MONTHS]
                    * effect.get(month - lag, 0.0)
                    for lag in range(1, len(phi) + 1)
                ]
                effect[month] = sum(terms)
            if effect[m] < 0:
                return True
        return False


def fitted(program: str, case, tables: list[np.ndarray], estimation: dict) -> list[dict]:
    """The models that the command estimates for a case with these records."""
    subprocess.run([program, "init", "history", str(case)], check=True, capture_output=True)
    rows = {"hydro_id": [], "date": [], "value_m3s": []}
    for plant, table in enumerate(tables):
        for place, value in enumerate(table.ravel()):
            rows["hydro_id"].append(plant)
            rows["date"].append(datetime.date(1900 + place // MONTHS, place % MONTHS + 1, 1))
            rows["value_m3s"].append(value)
    schema = pa.schema([("hydro_id", pa.int32()), ("date", pa.date32()), ("value_m3s", pa.float64())])
    path = case / "scenarios" / "inflow_history.parquet"
    path.unlink()
    pq.write_table(pa.table(rows, schema=schema), path)
    config = json.loads((case / "config.json").read_text())
    config["estimation"] = estimation
    (case / "config.json").write_text(json.dumps(config))
    told = subprocess.run(
        [program, "fit", str(case), "--json"], check=True, capture_output=True, text=True
    )
    return json.loads(told.stdout)["inflow_models"]


@pytest.mark.parametrize("selection", ["pacf", "pacf_annual"])
def test_estimates_are_those_of_numpy(program, tmp_path, selection):
    tables = [generated(70, (0.5, 0.3), 1), generated(70, (0.9, -0.4, 0.2), 2)]
    estimation = {"order_selection": selection, "max_order": 6}
    models = fitted(program, tmp_path / "case", tables, estimation)
    orders = set()
    for model, table in zip(models, tables, strict=True):
        reference = Reference(table, selection == "pacf_annual")
        for season, (phi, ratio) in zip(model["seasons"], reference.fit(6), strict=True):
            lags = reference.lags(phi)
            assert len(season["coefficients"]) == len(lags)
            np.testing.assert_allclose(season["coefficients"], lags, rtol=0, atol=1e-9)
            assert season["residual_std_ratio"] == pytest.approx(ratio, abs=1e-9)
            if reference.annual is not None and len(phi):
                assert season["annual_coefficient"] == pytest.approx(phi[-1], abs=1e-9)
            orders.add(len(lags))
    assert len(orders) > 1


def test_bias_and_spread_are_those_of_theory(program, tmp_path):
    # With one lag φ is a correlation, whose estimate from N years has a deviation of (1 − φ²) / √N and a bias of order 1 / N.
    years, phi = 60, 0.7
    found = []
    for run in range(6):
        tables = [generated(years, (phi,), 100 + 2 * run + plant) for plant in range(2)]
        for model in fitted(program, tmp_path / f"case{run}", tables, {"max_order": 1}):
            found += [season["coefficients"][0] for season in model["seasons"] if season["coefficients"]]
    theory = (1 - phi**2) / np.sqrt(years)
    assert len(found) == 6 * 2 * MONTHS
    assert abs(np.mean(found) - phi) < 3 / years
    assert 0.75 * theory < np.std(found) < 1.3 * theory


def test_a_model_that_fits_leaves_no_autocorrelation(program, tmp_path):
    tables = [generated(90, (0.7,), 7), generated(90, (0.6,), 8)]
    for model in fitted(program, tmp_path / "case", tables, {}):
        assert model["autocorrelation"][0] > 0.5
        assert abs(model["residual_autocorrelation"][0]) < 0.1
        assert 0 < model["growth_in_a_year"] < 1
        assert model["normality"] > 0.001
        for season, (mean, deviation) in zip(model["seasons"], model["simulated_m3s"], strict=True):
            assert mean == pytest.approx(season["mean_m3s"], rel=0.05)
            assert deviation == pytest.approx(season["std_m3s"], rel=0.15)


def test_tables_and_page_are_written_once_and_not_into_the_case(program, tmp_path):
    case, output = tmp_path / "case", tmp_path / "model"
    subprocess.run([program, "init", "history", str(case)], check=True, capture_output=True)

    def fit(place) -> subprocess.CompletedProcess:
        words = [program, "fit", str(case), "--output", str(place)]
        return subprocess.run(words, capture_output=True, text=True)

    assert fit(output).returncode == 0
    page = (output / "inflow_models.html").read_text()
    for words in ["Autocorrelation before and after", "Stationary", "Mean inflow by season", "Normal"]:
        assert words in page
    stats = pq.read_table(output / "scenarios" / "inflow_seasonal_stats.parquet")
    assert set(stats.column_names) == {"hydro_id", "stage_id", "mean_m3s", "std_m3s"}
    before = (output / "inflow_models.html").stat().st_mtime_ns
    again = fit(output)
    assert again.returncode == 1
    assert "something is there already" in again.stderr
    assert (output / "inflow_models.html").stat().st_mtime_ns == before
    inside = fit(case / "model")
    assert inside.returncode == 1
    assert "inside the case" in inside.stderr
    assert not (case / "model").exists()
