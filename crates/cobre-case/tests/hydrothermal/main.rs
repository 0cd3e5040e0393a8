//! Hydrothermal cases: right answers, right physics, and everything wrong said at once. One program,
//! as each that has the LP solver in it takes its time to link.

mod bad_cases;
mod bad_equipment;
mod bad_hydro;
mod balances;
mod book;
mod equipment;
mod extensive_water;
mod mutants;
mod non_negativity;
mod reference_cases;
mod tables;
mod water_tables;
mod water_world;
