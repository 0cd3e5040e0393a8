//! Tables as users make them: columns that are missing, whole numbers, an index, CSV.

use std::path::Path;
use std::sync::Arc;

use cobre_case::template::{CaseFiles, Template, TemplateColumn};
use cobre_case::{Options, load};
use parquet::column::writer::ColumnWriter;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::json;

use crate::hand_base::{base, costs, stages};

const LOADS: &str = "scenarios/load_seasonal_stats.parquet";

fn sound() -> CaseFiles {
    Template::find("cascade").expect("it is there").files()
}

/// Loads of the case: the columns but one, and more.
fn loads(without: &str, more: &[&'static str]) -> Vec<(&'static str, TemplateColumn)> {
    let mut columns = vec![
        ("bus_id", TemplateColumn::Ids(vec![0; 12])),
        ("stage_id", TemplateColumn::Ids((0..12).collect())),
        ("mean_mw", TemplateColumn::Ids(vec![150; 12])),
        ("std_mw", TemplateColumn::Ids(vec![1; 12])),
    ];
    columns.retain(|(name, _)| *name != without);
    let more = more
        .iter()
        .map(|name| (*name, TemplateColumn::Ids((0..12).collect())));
    columns.extend(more);
    columns
}

fn written(files: &CaseFiles) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    files.write(directory.path()).expect("it can be written");
    directory
}

fn errors(path: &Path) -> Vec<String> {
    load(path, &Options::default()).map_or_else(|error| error.errors(), |_| Vec::new())
}

#[test]
fn one_missing_column_is_one_error() {
    let inflows = [
        ("hydro_id", TemplateColumn::Ids(vec![0, 1])),
        ("stage_id", TemplateColumn::Ids(vec![0, 0])),
        ("std_m3s", TemplateColumn::Numbers(vec![1.0; 2])),
    ];
    let mut files = sound();
    files.table("scenarios/inflow_seasonal_stats.parquet", &inflows);
    let found = errors(written(&files).path());
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("column mean_m3s: the column is missing"),
        "{found:#?}"
    );
    let mut files = sound();
    files.table(LOADS, &loads("mean_mw", &[]));
    assert_eq!(errors(written(&files).path()).len(), 1);
}

#[test]
fn a_csv_file_with_an_index_or_other_separators_is_one_error_with_a_hint() {
    let mut files = sound();
    files.remove(LOADS);
    let directory = written(&files);
    let path = directory.path().join("scenarios/load_seasonal_stats.csv");
    for (text, hint) in [
        (
            ",bus_id,stage_id,mean_mw,std_mw\n0,0,0,150,1\n",
            "index=False",
        ),
        (
            "bus_id;stage_id;mean_mw;std_mw\n0;0;150;1\n",
            "separated by commas",
        ),
        (
            "bus_id;stage_id;mean_mw;std_mw\n0;0;150,5;1\n",
            "separated by commas",
        ),
    ] {
        std::fs::write(&path, text).expect("it can be written");
        let found = errors(directory.path());
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].contains(hint), "{found:#?}");
    }
}

#[test]
fn whole_numbers_are_taken_where_numbers_are_expected() {
    let mut files = sound();
    files.table(LOADS, &loads("", &[]));
    assert_eq!(errors(written(&files).path()), Vec::<String>::new());
}

#[test]
fn the_index_of_pandas_has_a_hint() {
    let mut files = sound();
    files.table(LOADS, &loads("", &["__index_level_0__"]));
    let found = errors(written(&files).path());
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("index=False"), "{found:#?}");
}

#[test]
fn a_csv_file_is_read_where_there_is_no_parquet_file() {
    let mut files = sound();
    files.remove(LOADS);
    let directory = written(&files);
    let rows = (0..12).map(|stage| format!("0,{stage},150,1.5\n"));
    let csv = format!(
        "bus_id,stage_id,mean_mw,std_mw\n{}",
        rows.collect::<String>()
    );
    let path = directory.path().join("scenarios/load_seasonal_stats.csv");
    std::fs::write(&path, &csv).expect("it can be written");
    assert_eq!(errors(directory.path()), Vec::<String>::new());
    let read = |path: &Path| {
        load(path, &Options::default())
            .expect("it is sound")
            .problem
    };
    let mut same = sound();
    let numbers = |value: f64| TemplateColumn::Numbers(vec![value; 12]);
    let columns = [
        ("bus_id", TemplateColumn::Ids(vec![0; 12])),
        ("stage_id", TemplateColumn::Ids((0..12).collect())),
        ("mean_mw", numbers(150.0)),
        ("std_mw", numbers(1.5)),
    ];
    same.table(LOADS, &columns);
    assert_eq!(
        read(directory.path()).values,
        read(written(&same).path()).values
    );
    std::fs::write(&path, csv.replace("0,3,150", "0,3,a lot")).expect("it can be written");
    let found = errors(directory.path());
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].contains("load_seasonal_stats.csv: line 5: mean_mw"),
        "{found:#?}"
    );
}

/// A history whose dates are times in microseconds, as pandas writes them.
fn with_times(path: &Path) {
    let schema = "message table {
        required int32 hydro_id;
        required int64 date (TIMESTAMP(MICROS, false));
        required double value_m3s;
    }";
    let schema = parse_message_type(schema).expect("a schema");
    let file = std::fs::File::create(path).expect("it can be written");
    let mut file = SerializedFileWriter::new(file, Arc::new(schema), Arc::default())
        .expect("it can be written");
    let mut group = file.next_row_group().expect("a group");
    while let Some(mut column) = group.next_column().expect("a column") {
        let written = match column.untyped() {
            ColumnWriter::Int32ColumnWriter(column) => column.write_batch(&[0, 1], None, None),
            ColumnWriter::Int64ColumnWriter(column) => {
                column.write_batch(&[347_155_200_000_000; 2], None, None)
            }
            ColumnWriter::DoubleColumnWriter(column) => column.write_batch(&[5.0; 2], None, None),
            _ => panic!("another type"),
        };
        written.expect("it can be written");
        column.close().expect("it can be written");
    }
    group.close().expect("it can be written");
    file.close().expect("it can be written");
}

#[test]
fn times_in_place_of_days_are_one_error_with_a_hint() {
    let directory = written(&sound());
    with_times(&directory.path().join("scenarios/inflow_history.parquet"));
    let found = errors(directory.path());
    let of_history = found
        .iter()
        .filter(|error| error.contains("inflow_history"));
    let of_history: Vec<&String> = of_history.collect();
    assert_eq!(of_history.len(), 1, "{found:#?}");
    assert!(
        of_history[0].contains("column date: date32 is expected, int64 is found; times and texts"),
        "{found:#?}"
    );
}

#[test]
fn a_source_needs_statistics_only_where_it_is_there() {
    let mut files = base();
    stages(&mut files, 3, "parallel");
    files.json(
        "system/non_controllable_sources.json",
        json!({"non_controllable_sources": [{"id": 3, "name": "wind", "bus_id": 0, "max_generation_mw": 50,
            "entry_stage_id": 1, "exit_stage_id": 2}]}),
    );
    let rows = "ncs_id,stage_id,mean,std\n3,1,0.4,0\n".to_owned();
    files.insert("scenarios/non_controllable_stats.csv", rows);
    // 20 MW in one of three stages.
    costs("a stage", &files, 450_000.0 - 20.0 * 10.0 * 300.0);
}
