//! Inflow models from a history: what is estimated, what is written, and what is refused.

use std::collections::HashMap;
use std::path::Path;

use cobre_case::template::{CaseFiles, TemplateColumn};
use cobre_case::{InflowFit, Options, inflow_fits, load};
use cobre_sddp::{Problem, Solver};
use serde_json::{Value, json};

use crate::bad_cases::{changed_in, errors, sound, warnings};
use crate::balances::Random;
use crate::reference_cases::{reference, solve};

const STATS: &str = "scenarios/inflow_seasonal_stats.parquet";
const COEFFICIENTS: &str = "scenarios/inflow_ar_coefficients.parquet";
const HISTORY: &str = "scenarios/inflow_history.parquet";
const OPENINGS: &str = "scenarios/noise_openings.parquet";
const CORRELATION: &str = "scenarios/correlation.json";

/// Columns of expected models after those of case, plant and season.
fn expected(text: &str) -> HashMap<(String, i32, usize), Vec<Option<f64>>> {
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let key = (
            cells[0].to_owned(),
            cells[1].parse().expect("a plant"),
            cells[2].parse().expect("a season"),
        );
        (
            key,
            cells[3..].iter().map(|cell| cell.parse().ok()).collect(),
        )
    });
    rows.collect()
}

#[test]
fn estimates_are_those_of_the_reference() {
    let Some(cases) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    let text = std::fs::read_to_string(cases.join("../expected_par.csv")).expect("it is there");
    let mut checked = 0;
    for ((case, plant, season), row) in expected(&text) {
        let fits = inflow_fits(&cases.join(&case)).expect("it is sound");
        let fits = fits.expect("it has a history");
        let fit = fits.plants.iter().find(|fit| fit.hydro_id == plant);
        let model = &fit.expect("it is there").seasons[season];
        let close = |found: f64, expected: f64, what: &str| {
            let off = (found - expected).abs() / expected.abs().max(1.0);
            assert!(
                off < 1e-9,
                "{case}, {plant}, {season}: {what} {found}, {expected}"
            );
        };
        close(model.mean_m3s, row[0].expect("a mean"), "mean");
        close(model.std_m3s, row[1].expect("a deviation"), "deviation");
        let coefficients: Vec<f64> = row[2..8].iter().flatten().copied().collect();
        assert_eq!(
            model.coefficients.len(),
            coefficients.len(),
            "{case}, {season}"
        );
        for (found, expected) in model.coefficients.iter().zip(coefficients) {
            close(*found, expected, "coefficient");
        }
        assert_eq!(model.annual.is_some(), row[8].is_some());
        if let Some((factor, mean, deviation)) = model.annual {
            close(factor, row[8].expect("a coefficient"), "annual");
            close(mean, row[9].expect("a mean"), "annual mean");
            close(deviation, row[10].expect("a deviation"), "annual deviation");
        }
        close(model.residual_std_ratio, row[11].expect("a ratio"), "ratio");
        checked += 1;
    }
    assert_eq!(checked, 36);
}

pub fn months() -> Value {
    let season = |id: i32| json!({"id": id, "month_start": id + 1, "label": format!("month {id}")});
    json!({"cycle_type": "monthly", "seasons": (0..12).map(season).collect::<Vec<_>>()})
}

/// A normal number, nearly.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.share() - 0.5).sum()
}

/// Dates (days since 1970) and inflows of months: z* = φ₁ z*₋₁ + φ₂ z*₋₂ + √… η around 100, 30 m³/s, from 1930.
fn series(years: usize, seed: u64, (first, second): (f64, f64)) -> Vec<(i32, f64)> {
    let mut random = Random::new(seed);
    let near = first / (1.0 - second);
    let rest = (1.0 - first * near - second * (first * near + second)).sqrt();
    let (mut one, mut two) = (0.0, 0.0);
    let mut day = -14_610;
    let mut found = Vec::new();
    for year in 0..years + 10 {
        for month in 0..12 {
            let next = first * one + second * two + rest * normal(&mut random);
            (one, two) = (next, one);
            if year >= 10 {
                found.push((day, 100.0 + 30.0 * next));
                let leap = month == 1 && (1930 + year - 10) % 4 == 0;
                day += [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month] + i32::from(leap);
            }
        }
    }
    found
}

/// Puts the history of plants into a case.
fn history(files: &mut CaseFiles, plants: &[(i32, Vec<(i32, f64)>)]) {
    let rows = || {
        let plants = plants.iter();
        plants.flat_map(|(id, series)| series.iter().map(move |(day, value)| (*id, *day, *value)))
    };
    let columns = [
        (
            "hydro_id",
            TemplateColumn::Ids(rows().map(|row| row.0).collect()),
        ),
        (
            "date",
            TemplateColumn::Ids(rows().map(|row| row.1).collect()),
        ),
        (
            "value_m3s",
            TemplateColumn::Numbers(rows().map(|row| row.2).collect()),
        ),
    ];
    files.table(HISTORY, &columns);
}

/// The cascade with a history of its two plants in place of their models.
pub fn with_history(years: usize) -> CaseFiles {
    let mut files = changed_in(sound(), "stages.json", "/season_definitions", &months());
    for file in [STATS, COEFFICIENTS, CORRELATION] {
        files.remove(file);
    }
    let plants = [0, 1].map(|id| {
        let seed = u64::try_from(id + 5).expect("not below 0");
        (id, series(years, seed, (0.6, 0.0)))
    });
    history(&mut files, &plants);
    files
}

fn written(files: &CaseFiles) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    directory
}

fn fitted(files: &CaseFiles) -> Vec<InflowFit> {
    let fits = inflow_fits(written(files).path()).expect("it is sound");
    fits.expect("it has a history").plants
}

fn problem(files: &CaseFiles) -> Problem {
    let case = load(written(files).path(), &Options::default());
    case.expect("it is sound").problem
}

#[test]
fn known_coefficients_are_found_with_the_bias_and_spread_of_theory() {
    // With one lag φ is a correlation: its estimate from 80 years has a deviation of (1 − φ²) / √80 = 0.072.
    let mut first = Vec::new();
    for seed in 0..12 {
        let mut files = with_history(80);
        let plants = [0, 1].map(|id| {
            let of_plant = u64::try_from(id).expect("not below 0");
            (id, series(80, 100 + 2 * seed + of_plant, (0.6, 0.0)))
        });
        history(&mut files, &plants);
        for fit in fitted(&files) {
            first.extend(fit.seasons.iter().map(|season| {
                let of_one = season.coefficients.len() == 1;
                of_one.then(|| season.coefficients[0])
            }));
        }
    }
    let all = first.len() as f64;
    let first: Vec<f64> = first.into_iter().flatten().collect();
    // Orders above 1 are chance: about 5 % each of five lags, where they are not reduced.
    assert!(first.len() as f64 > 0.7 * all, "{} of {all}", first.len());
    let mean = first.iter().sum::<f64>() / first.len() as f64;
    let squares: f64 = first.iter().map(|value| (value - mean).powi(2)).sum();
    let spread = (squares / first.len() as f64).sqrt();
    assert!((mean - 0.6).abs() < 0.03, "{mean}");
    assert!((0.054..0.093).contains(&spread), "{spread}");
}

#[test]
fn tables_that_are_written_give_the_model_again() {
    let mut files = with_history(60);
    let fits = inflow_fits(written(&files).path()).expect("it is sound");
    let fits = fits.expect("it has a history");
    let names: Vec<&str> = fits.files.iter().map(|(path, _)| path).collect();
    assert_eq!(names, [CORRELATION, COEFFICIENTS, STATS]);
    let estimated = problem(&files);
    for (path, bytes) in fits.files.iter() {
        files.insert(path, bytes);
    }
    let given = problem(&files);
    assert_eq!(estimated.values, given.values);
    assert_eq!(estimated.templates, given.templates);
    assert_eq!(
        inflow_fits(written(&files).path())
            .expect("it is sound")
            .map(|_| ()),
        None
    );
}

#[test]
fn one_table_given_and_the_other_estimated_go_together() {
    let files = with_history(60);
    let fits = inflow_fits(written(&files).path()).expect("it is sound");
    let fits = fits.expect("it has a history");
    for kept in [STATS, COEFFICIENTS] {
        let mut half = with_history(60);
        let (_, bytes) = fits
            .files
            .iter()
            .find(|(path, _)| *path == kept)
            .expect("it");
        half.insert(kept, bytes);
        let (whole, half) = (problem(&files), problem(&half));
        let off = whole.values.iter().zip(&half.values);
        let off = off
            .map(|(one, other)| (one - other).abs())
            .fold(0.0, f64::max);
        assert!(off < 1e-9, "{kept}: {off}");
    }
}

#[test]
fn a_series_of_one_value_has_no_deviation_and_no_lags() {
    let mut files = with_history(40);
    let varied = series(40, 3, (0.5, 0.0));
    let mut constant = series(40, 4, (0.5, 0.0));
    for (place, (_, value)) in constant.iter_mut().enumerate() {
        // Three of four years have the same inflow.
        if place / 12 % 4 != 0 {
            *value = 60.2;
        }
    }
    history(&mut files, &[(0, varied), (1, constant)]);
    let fits = fitted(&files);
    for season in &fits[1].seasons {
        assert_eq!((season.mean_m3s, season.std_m3s), (60.0, 0.0));
        assert!(season.coefficients.is_empty());
    }
    assert!(fits[0].seasons.iter().all(|season| season.std_m3s > 20.0));
}

#[test]
fn an_annual_component_is_estimated_and_carried_over_twelve_months() {
    let files = changed_in(
        with_history(50),
        "config.json",
        "/estimation",
        &json!({"order_selection": "pacf_annual"}),
    );
    let fits = fitted(&files);
    assert!(fits[0].seasons.iter().any(|season| season.annual.is_some()));
    let told = warnings(&files).join("; ");
    assert!(
        told.contains("are taken as the means of their seasons"),
        "{told}"
    );
    // Two storages, and twelve past inflows of each plant.
    assert_eq!(problem(&files).states.len(), 2 + 24);
}

#[test]
fn few_observations_are_a_warning_and_one_an_error() {
    let told = warnings(&with_history(12)).join("; ");
    assert!(
        told.contains("season 0 has 12 observations, fewer than min_observations"),
        "{told}"
    );
    let told = errors(&with_history(1)).join("; ");
    assert!(
        told.contains("season 0 has 1 observations; 2 are the fewest"),
        "{told}"
    );
}

#[test]
fn what_a_history_lacks_is_said() {
    let mut files = with_history(40);
    history(&mut files, &[(0, series(40, 3, (0.5, 0.0)))]);
    let told = errors(&files).join("; ");
    assert!(
        told.contains("hydro plant 1 (lower lake): there is no observation"),
        "{told}"
    );
    history(
        &mut files,
        &[
            (0, series(40, 3, (0.5, 0.0))),
            (9, series(3, 3, (0.5, 0.0))),
        ],
    );
    let told = errors(&files).join("; ");
    assert!(
        told.contains("row 481: there is no hydro plant 9") || told.contains("no hydro plant 9"),
        "{told}"
    );
    let twice = [series(2, 3, (0.5, 0.0)), series(2, 3, (0.5, 0.0))].concat();
    history(&mut files, &[(0, twice), (1, series(40, 3, (0.5, 0.0)))]);
    let told = errors(&files).join("; ");
    assert!(
        told.contains("there is a row of hydro plant 0, 1930-01-01 already"),
        "{told}"
    );
    let bare = changed_in(
        with_history(40),
        "stages.json",
        "/season_definitions",
        &Value::Null,
    );
    let told = errors(&bare).join("; ");
    assert!(
        told.contains("season_definitions: the key is missing; estimation from"),
        "{told}"
    );
    let mut files = with_history(40);
    files.remove(HISTORY);
    files.insert(
        "scenarios/inflow_history.csv",
        "hydro_id,date,value_m3s\n0,1930-13-01,5\n",
    );
    let told = errors(&files).join("; ");
    assert!(
        told.contains("line 2: date: a date such as 2026-01-31 is expected"),
        "{told}"
    );
}

#[test]
fn an_annual_component_that_cannot_be_is_refused() {
    let mut files = changed_in(sound(), "stages.json", "/season_definitions", &months());
    let rows = |deviation: f64| {
        [
            ("hydro_id", TemplateColumn::Ids(vec![0])),
            ("stage_id", TemplateColumn::Ids(vec![0])),
            ("annual_coefficient", TemplateColumn::Numbers(vec![0.3])),
            ("annual_mean_m3s", TemplateColumn::Numbers(vec![100.0])),
            ("annual_std_m3s", TemplateColumn::Numbers(vec![deviation])),
        ]
    };
    files.table("scenarios/inflow_annual_component.parquet", &rows(0.0));
    let told = errors(&files).join("; ");
    assert!(told.contains("annual_std_m3s of stage 0 is 0"), "{told}");
    files.table("scenarios/inflow_annual_component.parquet", &rows(9.0));
    let told = errors(&files).join("; ");
    assert!(
        told.contains("needs the inflow of the season 2 before that of stage 0"),
        "{told}"
    );
}

/// Rows of given openings: stage, opening, entity.
fn given(rows: &[(i32, i32, i32)]) -> CaseFiles {
    let mut files = sound();
    let columns = [
        (
            "stage_id",
            TemplateColumn::Ids(rows.iter().map(|row| row.0).collect()),
        ),
        (
            "opening_index",
            TemplateColumn::Ids(rows.iter().map(|row| row.1).collect()),
        ),
        (
            "entity_index",
            TemplateColumn::Ids(rows.iter().map(|row| row.2).collect()),
        ),
        ("value", TemplateColumn::Numbers(vec![0.5; rows.len()])),
    ];
    files.table(OPENINGS, &columns);
    files
}

#[test]
fn given_openings_must_be_complete() {
    let stage =
        |stage| (0..10).flat_map(move |opening| [0, 1, 2].map(|entity| (stage, opening, entity)));
    let all: Vec<_> = (0..12).flat_map(stage).collect();
    assert_eq!(errors(&given(&all)), [""; 0]);
    let told = errors(&given(&all[1..])).join("; ");
    assert!(
        told.contains("stage 0: there is no row of opening 0, entity 0"),
        "{told}"
    );
    let told = errors(&given(&[&all[..], &all[..1]].concat())).join("; ");
    assert!(
        told.contains("there is a row of stage 0, opening 0, entity 0 already"),
        "{told}"
    );
    let told = errors(&given(&[&all[..], &[(0, 10, 0)]].concat())).join("; ");
    assert!(
        told.contains("opening_index 10 of stage 0 is not from 0 to 9"),
        "{told}"
    );
    let told = errors(&given(&[&all[..], &[(0, 0, 3)]].concat())).join("; ");
    assert!(told.contains("it has 4 series; 3 are expected"), "{told}");
}

#[test]
fn past_residuals_come_as_they_happened() {
    let mut files = with_history(40);
    let text = files.remove("stages.json").expect("it is there");
    let text = String::from_utf8(text).expect("it is text");
    files.insert(
        "stages.json",
        text.replace("\"lhs\"", "\"historical_residuals\""),
    );
    let problem = problem(&files);
    let values = inflows_of(&problem, 5);
    // Ten years of forty, each once.
    let mut firsts: Vec<f64> = values.iter().map(|values| values[0]).collect();
    firsts.sort_by(f64::total_cmp);
    firsts.dedup();
    assert_eq!(firsts.len(), 10);
}

/// By opening, the right-hand sides of the inflows of a node.
fn inflows_of(problem: &Problem, node: usize) -> Vec<Vec<f64>> {
    let places = &problem.nodes[node].places;
    let openings = 0..problem.nodes[node].probabilities.len();
    openings
        .map(|opening| {
            let parts = places.split(problem.opening(&problem.values, node, opening));
            parts.row_lower.to_vec()
        })
        .collect()
}

#[test]
fn cases_with_a_history_train() {
    let Some(cases) = reference() else {
        println!("skipped: no reference data");
        return;
    };
    for name in ["d26-estimated-par2", "d12-par-annual"] {
        let results = solve(&cases.join(name), 20, Solver::Check);
        assert!(results.lp.checked > 0, "{name}");
        println!("{name}: {}", results.trained.bound);
    }
    copy_is_sound(&cases.join("d12-par-annual"));
}

/// A case that gives the tables estimated from its history trains to the same bound.
fn copy_is_sound(path: &Path) {
    let fits = inflow_fits(path).expect("it is sound").expect("a history");
    let directory = tempfile::tempdir().expect("a directory");
    for folder in ["", "system", "scenarios"] {
        std::fs::create_dir_all(directory.path().join(folder)).expect("a folder");
        for entry in std::fs::read_dir(path.join(folder)).expect("it").flatten() {
            if entry.path().is_file() {
                let to = directory.path().join(folder).join(entry.file_name());
                std::fs::copy(entry.path(), to).expect("it can be copied");
            }
        }
    }
    for (file, bytes) in fits.files.iter() {
        std::fs::write(directory.path().join(file), bytes).expect("it can be written");
    }
    let bound = |path: &Path| solve(path, 10, Solver::Auto).trained.bound;
    let (estimated, given) = (bound(path), bound(directory.path()));
    assert!(
        (estimated - given).abs() <= 1e-9 * estimated.abs(),
        "{estimated}, {given}"
    );
}

#[test]
fn a_history_that_cannot_be_read_is_the_one_error() {
    let mut files = with_history(40);
    files.remove(HISTORY);
    files.insert(
        "scenarios/inflow_history.csv",
        "hydro_id,date,value_m3s\n0,2001-01-01,NaN\n",
    );
    let found = errors(&files);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("scenarios/inflow_history.csv: row 1: value_m3s"),
        "{found:#?}"
    );
}
