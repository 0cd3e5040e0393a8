//! Finding things by the numbers that files give them.

use std::collections::{HashMap, HashSet};

use crate::finding::{Findings, Place};
use crate::hydrothermal::number::Id;

/// Things of one kind by number, with a label that no two of them share.
#[derive(Debug, Default)]
pub(crate) struct Index {
    what: &'static str,
    places: HashMap<Id, usize>,
    pub(crate) labels: Vec<String>,
}

impl Index {
    /// An index of things with these numbers and names; says which numbers come twice.
    pub(crate) fn new<'n>(
        what: &'static str,
        things: impl Iterator<Item = (Id, &'n str)> + Clone,
        list: &Place,
        findings: &mut Findings,
    ) -> Self {
        let mut places = HashMap::new();
        for (place, (id, _)) in things.clone().enumerate() {
            if let Some(first) = places.insert(id, place) {
                let at = list.index(place).key("id");
                findings.wrong(&at, format!("{what} {id} is there already, at [{first}]"));
            }
        }
        Self {
            what,
            places,
            labels: labels(things),
        }
    }

    /// Where the thing of this number is; says if there is none.
    pub(crate) fn find(&self, id: Id, at: &Place, findings: &mut Findings) -> Option<usize> {
        let found = self.places.get(&id).copied();
        if found.is_none() {
            findings.wrong(at, format!("there is no {} {id}", self.what));
        }
        found
    }

    /// The numbers of the entries, in order.
    pub(crate) fn numbers(&self) -> Vec<Id> {
        let mut numbers: Vec<(usize, Id)> = self
            .places
            .iter()
            .map(|(id, place)| (*place, *id))
            .collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|(_, id)| id).collect()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The kind of the entries.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }
}

/// Names fit for a linear program: letters, digits and underscores, with the number where two are
/// the same; all have it if that would not tell them apart.
fn labels<'n>(things: impl Iterator<Item = (Id, &'n str)> + Clone) -> Vec<String> {
    let plain = |name: &str| -> String {
        let fits = |letter: char| letter.is_alphanumeric() || letter == '-';
        let letters = name.trim().chars();
        letters
            .map(|letter| if fits(letter) { letter } else { '_' })
            .collect()
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (_, name) in things.clone() {
        *counts.entry(plain(name)).or_default() += 1;
    }
    let short = things.clone().map(|(id, name)| match plain(name) {
        plain if plain.is_empty() => id.to_string(),
        plain if counts[&plain] > 1 => format!("{plain}_{id}"),
        plain => plain,
    });
    let short: Vec<String> = short.collect();
    if short.iter().collect::<HashSet<_>>().len() == short.len() {
        return short;
    }
    things
        .map(|(id, name)| format!("{}_{id}", plain(name)))
        .collect()
}

/// One value per thing and stage, as rows of a table give them; says which rows name nothing or
/// come twice.
pub(crate) fn by_stage<R, T: Copy>(
    rows: &[R],
    file: &'static str,
    things: &Index,
    stages: &Index,
    read: impl Fn(&R) -> (Id, Id, T),
    findings: &mut Findings,
) -> Vec<Vec<Option<T>>> {
    let at = Place::file(file);
    let mut found = vec![vec![None; stages.len()]; things.len()];
    for (number, row) in rows.iter().enumerate() {
        let (thing, stage, value) = read(row);
        let place = at.row(number);
        let thing_found = things.find(thing, &place, findings);
        let stage_found = stages.find(stage, &place, findings);
        let (Some(thing_at), Some(stage_at)) = (thing_found, stage_found) else {
            continue;
        };
        if found[thing_at][stage_at].replace(value).is_some() {
            let what = things.what;
            findings.wrong(
                &place,
                format!("there is a row of {what} {thing}, stage {stage} already"),
            );
        }
    }
    found
}

/// The values of one thing in all stages; says in which stages they are missing. `None` without
/// any, which is not said.
pub(crate) fn complete<T: Copy>(
    values: &[Option<T>],
    file: &'static str,
    thing: &str,
    stages: &Index,
    findings: &mut Findings,
) -> Option<Vec<T>> {
    if values.iter().all(Option::is_none) {
        return None;
    }
    let lacking: Vec<&str> = values
        .iter()
        .zip(&stages.labels)
        .filter(|(value, _)| value.is_none())
        .map(|(_, label)| label.as_str())
        .collect();
    if !lacking.is_empty() {
        let plural = if lacking.len() == 1 { "" } else { "s" };
        let message = format!("there is no row for stage{plural} {}", lacking.join(", "));
        findings.wrong(&Place::file(file).rows(thing), message);
    }
    values.iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_fit_for_a_linear_program_and_differ() {
        let things = [(1, "Três Marias"), (2, "A.B"), (3, "A B"), (4, " ")];
        assert_eq!(
            labels(things.into_iter()),
            ["Três_Marias", "A_B_2", "A_B_3", "4"]
        );
        let things = [(1, "A"), (2, "A"), (3, "A_1")];
        assert_eq!(labels(things.into_iter()), ["A_1", "A_2", "A_1_3"]);
    }
}
