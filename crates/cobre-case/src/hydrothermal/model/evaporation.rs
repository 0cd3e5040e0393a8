//! Evaporation: a linear function of the storage before and after a period.

use super::Program;
use super::water::UNLIMITED;
use crate::hydrothermal::system::Hydro;

/// Adds evaporation to the balances of a plant:
///
/// evaporation + too little − too much = constant + slope · (storage before + storage after) / 2
pub(super) fn add(program: &mut Program<'_>, place: usize, plant: &Hydro) {
    let number = program.number;
    let Some(own) = plant.evaporation.as_ref().map(|own| own[number]) else {
        return;
    };
    if plant.phases[number].passes() {
        return;
    }
    let (label, costs) = (&plant.label, *plant.costs(number));
    for period in 0..program.stage.periods() {
        let hours = program.stage.period_hours(period);
        let mut column = |what: &str, cost: f64, least: f64, most: f64| {
            let name = program.period_name(what, label, period);
            program.lp.column(name, cost * hours, least, most)
        };
        let evaporated = column("evaporation", 0.0, -own.most, own.most);
        let below = column("evaporation_below", costs.evaporation_below, 0.0, UNLIMITED);
        let above = column("evaporation_above", costs.evaporation_above, 0.0, UNLIMITED);
        let mut terms = vec![(evaporated, 1.0), (below, 1.0), (above, -1.0)];
        if own.slope != 0.0 {
            let storages = program.storages(place, period).into_iter().flatten();
            terms.extend(storages.map(|column| (column, -own.slope / 2.0)));
        }
        let name = program.period_name("evaporated", label, period);
        program.lp.row(name, own.constant, own.constant, &terms);
        let volume = program.stage.period_volume(period);
        program.add_volume(place, period, evaporated, volume);
        let layout = &mut program.layout.hydros[place];
        layout.evaporation.push(evaporated);
        layout.evaporation_below.push(below);
        layout.evaporation_above.push(above);
    }
}
