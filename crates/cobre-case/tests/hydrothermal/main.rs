//! Hydrothermal cases: right answers, right physics, and everything wrong said at once. One program,
//! as each that has the LP solver in it takes its time to link.

mod bad_cases;
mod bad_equipment;
mod bad_hydro;
mod balances;
mod book;
mod equipment;
mod extensive_water;
mod fictitious;
mod hand_made_tables;
mod mutants;
mod non_negativity;
#[path = "../../../cobre-sddp/tests/random/mod.rs"]
mod random;
mod reference_cases;
mod tables;
#[path = "../../../cobre-sddp/tests/tree/mod.rs"]
mod tree;
mod water_tables;
mod water_world;
