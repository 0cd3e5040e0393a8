//! The problem of a system: one linear program per stage, one after the other.
//!
//! Power is in MW, flow in m³/s, storage in hm³, cost in $. Names are `what.thing` or
//! `what.thing.block`, so that a linear program can be read by a person.

mod batteries;
mod commitments;
mod energy;
mod evaporation;
mod fictitious;
mod generic;
mod inflow;
mod layout;
mod limits;
mod openings;
mod production;
mod pumping;
mod series;
mod thermals;
mod travel;
mod units;
mod water;
mod water_worth;

use cobre_sddp::{ColumnId, Draft, NodeId, Problem, Sense, Template};

pub(crate) use self::layout::{BusLayout, Generation, HydroLayout, Layout};
use self::openings::Openings;
pub(crate) use self::series::{SeriesNumber, StageSeries};
pub(crate) use self::water_worth::saving;
use super::paths::PathPlans;
use super::sampling::OpeningSampler;
use super::system::{RegimeNode, Stage, System};
use crate::Options;

/// Builds the problem of a system, given what inflows are never below; says also where things are in each stage, and what is uncertain.
pub(crate) fn build(
    system: &System,
    sampling: &OpeningSampler,
    lowest: &[Vec<f64>],
    paths: &PathPlans,
    options: &Options,
) -> Result<StageProblems, Vec<String>> {
    let mut draft = Draft::new(
        Sense::Minimize,
        options.bound.unwrap_or_else(|| least_cost(system)),
    );
    draft.fictitious(fictitious::mean(system, sampling));
    water::states(system, &mut draft);
    batteries::states(system, &mut draft);
    commitments::states(system, &mut draft);
    let (mut layouts, mut series) = (Vec::new(), Vec::new());
    let mut graph = Vec::with_capacity(system.nodes.len());
    for (number, stage) in system.stages.iter().enumerate() {
        let mut program = Program::new(system, number);
        water::add(&mut program);
        units::add(&mut program);
        pumping::add(&mut program);
        water::balance(&mut program, lowest);
        thermals::add(&mut program);
        batteries::add(&mut program);
        energy::add(&mut program);
        generic::add(&mut program);
        let nodes = system.nodes.iter().filter(|node| node.stage == number);
        let nodes: Vec<&RegimeNode> = nodes.collect();
        let of_stage: Vec<StageSeries> = nodes
            .iter()
            .map(|node| StageSeries::new(&program, node.regime))
            .collect();
        let template = draft.template(program.lp);
        layouts.push(program.layout);
        let risk = options.risk.unwrap_or(stage.risk);
        if number == 0 {
            draft.risk(risk);
        }
        for (node, own) in nodes.into_iter().zip(of_stage) {
            let openings = Openings::new(system, number, &own, sampling);
            let place = draft.node(&node.name, template);
            draft.node_stage(place, stage.id.into(), stage.start_date.to_string());
            openings.add(place, &mut draft);
            for changes in paths.ranges(number, &own) {
                draft.range(place, changes);
            }
            draft.node_risk(place, risk);
            graph.push(place);
            series.push(own);
        }
    }
    connect(system, &graph, &mut draft);
    let problem = draft.build();
    let problem = problem.map_err(|errors| errors.0.iter().map(ToString::to_string).collect());
    problem.map(|problem| StageProblems {
        problem,
        layouts,
        series,
    })
}

/// Connects the nodes of a system, given their places in the problem. A discount is what the probabilities lack to 1.
fn connect(system: &System, graph: &[NodeId], draft: &mut Draft) {
    for (node, &from) in system.nodes.iter().zip(graph) {
        if node.initial > 0.0 {
            draft.start(from, node.initial);
        }
        for &(next, probability) in &node.next {
            let discount = system.stages[node.stage].discount;
            draft.edge(from, graph[next], probability * discount);
        }
    }
}

/// The problem of a system; by stage, where things are; by node, what is uncertain.
pub(crate) struct StageProblems {
    pub(crate) problem: Problem,
    pub(crate) layouts: Vec<Layout>,
    pub(crate) series: Vec<StageSeries>,
}

/// A lower bound on the cost of all stages. Energy of sources, whose curtailment costs, and energy of contracts that
/// bring revenue lower the cost of a stage below zero.
fn least_cost(system: &System) -> f64 {
    let mut bound = 0.0;
    for (number, stage) in system.stages.iter().enumerate() {
        for (block, hours) in stage.hours.iter().enumerate() {
            for source in &system.sources {
                let most = source.available(number, block, 1.0);
                bound -= source.curtailment_cost[number] * most * hours;
            }
            for contract in &system.contracts {
                let terms = &contract.terms[number][block];
                bound += terms.price.min(0.0) * terms.max * hours;
            }
        }
    }
    match system.cycle {
        None => bound,
        // As often as the cycle comes again, discounted.
        Some(_) => {
            bound
                / (1.0
                    - system
                        .stages
                        .iter()
                        .map(|stage| stage.discount)
                        .product::<f64>())
        }
    }
}

/// The linear program of a stage in the making.
struct Program<'s> {
    system: &'s System,
    /// The place of the stage.
    number: usize,
    stage: &'s Stage,
    lp: Template,
    layout: Layout,
    /// The terms of water balances so far, in hm³ that leave, by hydro plant and period.
    water: Vec<Vec<Vec<(ColumnId, f64)>>>,
}

impl<'s> Program<'s> {
    fn new(system: &'s System, number: usize) -> Self {
        Self {
            system,
            number,
            stage: &system.stages[number],
            lp: Template::new(),
            layout: Layout::default(),
            water: vec![vec![Vec::new(); system.stages[number].periods()]; system.hydros.len()],
        }
    }

    /// Lets a flow of a block, m³/s, leave one hydro plant and reach another, either of which may be none.
    fn move_water(&mut self, from: Option<usize>, to: Option<usize>, block: usize, flow: ColumnId) {
        let (period, volume) = (self.stage.period_of(block), self.stage.volume(block));
        for (plant, volume) in [(from, volume), (to, -volume)] {
            if let Some(plant) = plant {
                self.add_volume(plant, period, flow, volume);
            }
        }
    }

    /// Adds a term to the water balance of a hydro plant, in hm³ that leave it.
    fn add_volume(&mut self, plant: usize, period: usize, column: ColumnId, hm3: f64) {
        self.water[plant][period].push((column, hm3));
    }

    /// The storage of a hydro plant before and after a period, if it can store.
    fn storages(&self, plant: usize, period: usize) -> Option<[ColumnId; 2]> {
        let layout = &self.layout.hydros[plant];
        let [first, _] = layout.storage?;
        let before = match period {
            0 => first,
            period => layout.levels[period - 1],
        };
        Some([before, layout.levels[period]])
    }

    /// The name of a thing in a period: with the block where blocks have periods of their own.
    fn period_name(&self, what: &str, thing: &str, period: usize) -> String {
        if self.stage.periods() > 1 {
            format!("{what}.{thing}.{}", self.stage.block_labels[period])
        } else {
            format!("{what}.{thing}")
        }
    }

    /// The blocks by number, with their hours and labels.
    fn blocks(&self) -> impl Iterator<Item = (usize, f64, &'s str)> + use<'s> {
        let labels = self.stage.block_labels.iter().map(String::as_str);
        let hours = self.stage.hours.iter().copied();
        hours
            .zip(labels)
            .enumerate()
            .map(|(block, (hours, label))| (block, hours, label))
    }

    /// A column for each block, with the cost and the bounds that `of` gives for its number and hours.
    fn by_block_of(
        &mut self,
        what: &str,
        thing: &str,
        of: impl Fn(usize, f64) -> (f64, f64, f64),
    ) -> Vec<ColumnId> {
        let blocks = self.blocks();
        blocks
            .map(|(block, hours, name)| {
                let (cost, lower, upper) = of(block, hours);
                let name = format!("{what}.{thing}.{name}");
                self.lp.column(name, cost, lower, upper)
            })
            .collect()
    }

    /// A column for each block whose cost is per hour.
    fn by_block(
        &mut self,
        what: &str,
        thing: &str,
        cost: f64,
        lower: f64,
        upper: f64,
    ) -> Vec<ColumnId> {
        self.by_block_of(what, thing, |_, hours| (cost * hours, lower, upper))
    }
}
