//! Hydrothermal cases: right answers, right physics, and everything wrong said at once. One program,
//! as each that has the LP solver in it takes its time to link.

mod bad_cases;
mod bad_equipment;
mod bad_hydro;
mod balances;
mod book;
mod cyclic;
mod equipment;
mod expressions;
mod extensive_water;
mod fictitious;
mod hand_base;
mod hand_made_tables;
mod hand_plants;
mod inflow_history;
mod inflow_seasons;
mod migration;
mod mutants;
mod non_negativity;
mod paths;
#[path = "../../../cobre-sddp/tests/random/mod.rs"]
mod random;
mod reference_cases;
mod regimes;
mod tables;
mod terminal;
#[path = "../../../cobre-sddp/tests/tree/mod.rs"]
mod tree;
mod upstream;
mod water_tables;
mod water_world;
mod weeks_and_a_month;
