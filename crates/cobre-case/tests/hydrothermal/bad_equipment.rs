//! Equipment and constraints with something wrong in them: refused with file, place and what was expected; and what is
//! suspicious.

use cobre_case::template::{CaseFiles, TemplateColumn};
use serde_json::{Value, json};

use crate::bad_cases::{changed_in, errors, text, warnings};
use crate::equipment::sound;

/// Changes of JSON files: file, place, value, and what must be said about it.
const WRONG: &str = r#"
system/pumping_stations.json | /pumping_stations/0/source_hydro_id | 7 | pumping_stations[0].source_hydro_id: there is no hydro plant 7
system/pumping_stations.json | /pumping_stations/0/destination_hydro_id | 1 | pumping_stations[0].destination_hydro_id: it is the source plant as well
system/pumping_stations.json | /pumping_stations/0/bus_id | 5 | pumping_stations[0].bus_id: there is no bus 5
system/pumping_stations.json | /pumping_stations/0/flow/min_m3s | 900 | pumping_stations[0].flow.min_m3s: 900 is above max_m3s
system/pumping_stations.json | /pumping_stations/0/exit_stage_id | 0 | pumping_stations[0].exit_stage_id: 0 is not after entry_stage_id
system/pumping_stations.json | /pumping_stations/0/power | 3 | pumping_stations[0].power: unknown key
system/energy_contracts.json | /contracts/0/type | "swap" | contracts[0].type: "swap" is none of import, export
system/energy_contracts.json | /contracts/0/limits/max_mw | -1 | contracts[0].limits.max_mw: a number that is at least 0 is expected
system/energy_contracts.json | /contracts/1/id | 0 | contracts[1].id: contract 0 is there already, at [0]
system/energy_contracts.json | /contracts/0/price_per_mwh | null | contracts[0].price_per_mwh: the key is missing
system/batteries.json | /batteries/0/charge_efficiency | 1.1 | batteries[0].charge_efficiency: a number above 0 and at most 1, as nothing gains energy
system/batteries.json | /batteries/0/discharge_efficiency | 0 | batteries[0].discharge_efficiency: a number above 0 and at most 1
system/batteries.json | /batteries/0/initial_level_mwh | 1e6 | batteries[0].initial_level_mwh: the initial level is 1000000; it must be from
system/batteries.json | /batteries/0/min_level_mwh | 1e6 | batteries[0].min_level_mwh: 1000000 is above capacity_mwh
system/batteries.json | /batteries/0/self_discharge_per_hour | 2 | batteries[0].self_discharge_per_hour: a number from 0 to 1
system/batteries.json | /batteries/0/bus_id | 9 | batteries[0].bus_id: there is no bus 9
system/thermals.json | /thermals/1/cost_per_mwh | 5 | thermals[1].cost_per_mwh: cost_segments are there as well
system/thermals.json | /thermals/0/cost_per_mwh | null | thermals[0].cost_per_mwh: the key is missing; or else give cost_segments
system/thermals.json | /thermals/1/cost_segments | [] | thermals[1].cost_segments: there is no segment
system/thermals.json | /thermals/1/cost_segments/1/cost_per_mwh | 1 | thermals[1].cost_segments[1].cost_per_mwh: 1 is below the 50 of the segment before
system/thermals.json | /thermals/2/anticipated_config | {} | thermals[2].anticipated_config: one of lead_stages and lead_time_hours is expected
system/thermals.json | /thermals/2/anticipated_config/lead_stages | 0 | lead_stages: a whole number from 1 to 120 is expected
system/thermals.json | /thermals/2/gnl_config | {"lag_stages": 1} | thermals[2].gnl_config: anticipated_config is there as well
system/thermals.json | /thermals/2/anticipated_config/lead_stages | 1 | thermal plant 2 needs the commitments of 1 stages, 2 are given
system/thermals.json | /thermals/2/anticipated_config | null | past_anticipated_commitments[0].values_mw: the plant has no anticipated_config
initial_conditions.json | /past_anticipated_commitments | [] | past_anticipated_commitments: thermal plant 2 needs the commitments of 2 stages, 0 are given
initial_conditions.json | /past_anticipated_commitments/0/values_mw/1 | 5000 | values_mw[1]: 5000 is committed in stage 1, whose generation is from
initial_conditions.json | /past_anticipated_commitments/0/thermal_id | 8 | past_anticipated_commitments[0].thermal_id: there is no thermal plant 8
system/hydros.json | /hydros/0/bus_id | 0 | hydros[0].bus_id: unit_groups have buses of their own; remove bus_id
system/hydros.json | /hydros/1/bus_id | null | hydros[1].bus_id: the key is missing; or else give unit_groups
system/hydros.json | /hydros/0/unit_groups/1/bus_id | 6 | hydros[0].unit_groups[1].bus_id: there is no bus 6
system/hydros.json | /hydros/0/unit_groups/1/id | 0 | unit_groups[1].id: group of units 0 is there already
system/hydros.json | /hydros/0/unit_groups/0/min_turbined_m3s | 900 | unit_groups[0].min_turbined_m3s: 900 is above the most
constraints/exchange_factors.json | /exchange_factors/0/line_id | 3 | exchange_factors[0].line_id: there is no line 3
constraints/exchange_factors.json | /exchange_factors/0/block_factors/0/block_id | 9 | exchange_factors[0].block_factors[0].block_id: stage 1 has no block 9
constraints/generic_constraints.json | /constraints/0/expression | "thermal_genration(1)" | constraints[0].expression: there is no variable thermal_genration; there are hydro_storage, hydro_storage_initial,
constraints/generic_constraints.json | /constraints/0/expression | "" | constraints[0].expression: the expression is empty
constraints/generic_constraints.json | /constraints/0/expression | "2 * thermal_generation(7)" | constraints[0].expression: there is no thermal plant 7
constraints/generic_constraints.json | /constraints/0/expression | "thermal_generation(1) * 2" | + or - between terms is expected at letter 23
constraints/generic_constraints.json | /constraints/1/expression | "hydro_storage(0, 1)" | hydro_storage is one value of a stage: leave the block out
constraints/generic_constraints.json | /constraints/0/expression | "thermal_generation(1, 7)" | thermal_generation(1, 7): stage 0, in which the constraint holds, has no block 7
constraints/generic_constraints.json | /constraints/0/expression | "contract_import(1)" | contract_import(1): the contract is of the other type
constraints/generic_constraints.json | /constraints/0/sense | "<" | constraints[0].sense: "<" is none of >=, <=, ==
constraints/generic_constraints.json | /constraints/0/sense | null | the constraint has no sense: give bound_lower or bound_upper, not bound
constraints/generic_constraints.json | /constraints/3/sense | ">=" | the constraint has a sense: give bound, and nothing else
constraints/generic_constraints.json | /constraints/0/slack/penalty | null | constraints[0].slack.penalty: the key is missing
constraints/generic_constraints.json | /constraints/0/slack/penalty | 0 | constraints[0].slack.penalty: a number above 0
constraints/generic_constraints.json | /constraints/1/id | 0 | constraints[1].id: generic constraint 0 is there already
system/lines.json | /lines/0/exit_stage_id | "two" | lines[0].exit_stage_id: a whole number
"#;

#[test]
fn every_wrong_value_of_equipment_is_said_with_its_place() {
    assert_eq!(errors(&sound()), [""; 0]);
    for line in WRONG.trim().lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [path, pointer, value, said] = cells[..] else {
            panic!("{line}")
        };
        let value: Value = serde_json::from_str(value).expect(line);
        let found = errors(&changed_in(sound(), path, pointer, &value));
        assert!(
            found.iter().any(|error| error.contains(said)),
            "{line}: {found:#?}"
        );
    }
}

fn ids(values: &[usize]) -> TemplateColumn {
    TemplateColumn::of_places(values.to_vec())
}

fn numbers(values: &[f64]) -> TemplateColumn {
    TemplateColumn::Numbers(values.to_vec())
}

/// A table, its columns, and what must be said about it.
type WrongTable = (
    &'static str,
    Vec<(&'static str, TemplateColumn)>,
    &'static str,
);

fn wrong_tables() -> Vec<WrongTable> {
    let stage = |values: &[usize]| ("stage_id", ids(values));
    let block = |values: &[usize]| ("block_id", ids(values));
    vec![
        (
            "constraints/pumping_bounds.parquet",
            vec![
                ("station_id", ids(&[3])),
                stage(&[0]),
                ("max_m3s", numbers(&[1.0])),
            ],
            "row 1: there is no pumping station 3",
        ),
        (
            "constraints/pumping_bounds.parquet",
            vec![
                ("station_id", ids(&[0])),
                stage(&[1]),
                ("min_m3s", numbers(&[500.0])),
            ],
            "pumping station 0, stage 1: the least, 500, is above the most",
        ),
        (
            "constraints/contract_bounds.parquet",
            vec![
                ("contract_id", ids(&[0, 0])),
                stage(&[1, 1]),
                ("max_mw", numbers(&[9.0, 9.0])),
            ],
            "row 2: there is a row of contract 0, stage 1 already",
        ),
        (
            "constraints/contract_bounds.parquet",
            vec![
                ("contract_id", ids(&[0])),
                stage(&[1]),
                block(&[8]),
                ("max_mw", numbers(&[9.0])),
            ],
            "row 1: stage 1 has no block 8",
        ),
        (
            "constraints/battery_bounds.parquet",
            vec![
                ("battery_id", ids(&[0])),
                stage(&[7]),
                ("max_charge_mw", numbers(&[1.0])),
            ],
            "row 1: there is no stage 7",
        ),
        (
            "constraints/ncs_bounds.parquet",
            vec![("ncs_id", ids(&[0])), stage(&[0])],
            "column available_generation_mw: the column is missing",
        ),
    ]
}

fn more_wrong_tables() -> Vec<WrongTable> {
    let stage = |values: &[usize]| ("stage_id", ids(values));
    let block = |values: &[usize]| ("block_id", ids(values));
    vec![
        (
            "constraints/hydro_bounds.parquet",
            vec![
                ("hydro_id", ids(&[0])),
                stage(&[2]),
                block(&[0]),
                ("max_storage_hm3", numbers(&[10.0])),
            ],
            "row 1: max_storage_hm3 is one value of a stage: give it without block_id",
        ),
        (
            "constraints/hydro_unit_group_bounds.parquet",
            vec![
                ("hydro_id", ids(&[0])),
                ("hydro_unit_group_id", ids(&[4])),
                stage(&[0]),
                ("max_turbined_m3s", numbers(&[1.0])),
            ],
            "row 1: hydro plant 0 has no group of units 4",
        ),
        (
            "constraints/thermal_bounds.parquet",
            vec![
                ("thermal_id", ids(&[2])),
                stage(&[2]),
                block(&[0]),
                ("cost_per_mwh", numbers(&[7.0])),
            ],
            "but a commitment has one price: give cost_per_mwh without block_id",
        ),
        (
            "constraints/penalty_overrides_bus.parquet",
            vec![
                ("bus_id", ids(&[0])),
                stage(&[0]),
                ("excess_cost", numbers(&[0.0])),
            ],
            "row 1: excess_cost: a number above 0 is expected, 0.0 is found",
        ),
        (
            "constraints/penalty_overrides_line.parquet",
            vec![
                ("line_id", ids(&[4])),
                stage(&[0]),
                ("exchange_cost", numbers(&[1.0])),
            ],
            "row 1: there is no line 4",
        ),
        (
            "constraints/penalty_overrides_ncs.parquet",
            vec![
                ("plant_id", ids(&[0])),
                stage(&[0]),
                ("curtailment_cost", numbers(&[1.0])),
            ],
            "column source_id: the column is missing",
        ),
        (
            "constraints/penalty_overrides_hydro.parquet",
            vec![
                ("hydro_id", ids(&[9])),
                stage(&[0]),
                ("spillage_cost", numbers(&[1.0])),
            ],
            "row 1: there is no hydro plant 9",
        ),
        (
            "constraints/generic_constraint_bounds.parquet",
            vec![
                ("constraint_id", ids(&[9])),
                stage(&[0]),
                ("bound", numbers(&[1.0])),
            ],
            "row 1: there is no generic constraint 9",
        ),
    ]
}

#[test]
fn every_wrong_row_of_equipment_is_said_with_its_place() {
    let tables = wrong_tables().into_iter().chain(more_wrong_tables());
    for (path, columns, said) in tables {
        let mut files = sound();
        files.table(path, &columns);
        let found = errors(&files);
        let all = |error: &String| error.starts_with(path) && error.contains(said);
        assert!(found.iter().any(all), "{path}: {said}: {found:#?}");
    }
}

/// Changes that are legal but suspicious, and what is said.
const SUSPICIOUS: &str = r#"
system/batteries.json | /batteries/0 | {"id": 0, "name": "A0", "bus_id": 1, "capacity_mwh": 100, "initial_level_mwh": 5, "max_charge_mw": 9, "max_discharge_mw": 9} | battery 0 (A0): nothing is lost in it
system/batteries.json | /batteries/0/max_charge_mw | 0 | battery 0 (A0): it can never be charged and discharged
system/batteries.json | /batteries/0/self_discharge_per_hour | 0.5 | less than a thousandth of its energy is left
system/pumping_stations.json | /pumping_stations/0/consumption_mw_per_m3s | 0.01 | pumping station 0 (P0): lifting water takes 0.01 MW/(m³/s), and on its way back it gives
system/pumping_stations.json | /pumping_stations/0/entry_stage_id | 9 | pumping station 0 (P0): it can pump in no stage
system/energy_contracts.json | /contracts/1/price_per_mwh | 12 | contract 1 (C1): its price is above 0, so exporting costs
system/energy_contracts.json | /contracts/0/price_per_mwh | -12 | contract 0 (C0): its price is below 0: importing is paid for
system/thermals.json | /thermals/1/generation/max_mw | 900 | thermal plant 1 (T1): its cost_segments have
constraints/generic_constraints.json | /constraints/4 | {"id": 4, "name": "G4", "expression": "hydro_spillage(1)", "sense": "<="} | generic constraint 4 (G4): it holds in no stage
constraints/generic_constraints.json | /constraints/0/expression | "0 * thermal_generation(0) + thermal_generation(1)" | generic constraint 0 (G0): a term has the factor 0
"#;

#[test]
fn suspicious_equipment_is_a_warning() {
    for line in SUSPICIOUS.trim().lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [path, pointer, value, said] = cells[..] else {
            panic!("{line}")
        };
        let value: Value = serde_json::from_str(value).expect(line);
        let files = if pointer == "/constraints/4" {
            added(path, "constraints", value)
        } else {
            changed_in(sound(), path, pointer, &value)
        };
        let found = warnings(&files);
        assert!(
            found.iter().any(|warning| warning.contains(said)),
            "{line}: {found:#?}"
        );
    }
}

/// The sound case with one more entry in a list.
fn added(path: &str, list: &str, value: Value) -> CaseFiles {
    let mut files = sound();
    let mut file = text(&files, path);
    file[list].as_array_mut().expect("a list").push(value);
    files.insert(path, json!(file).to_string());
    files
}
