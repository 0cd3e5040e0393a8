//! The table of a policy.

/// The cuts of a policy, one row each; every state has a column of slopes.
pub mod cuts {
    use crate::schema::{Column, Kind, TableSchema};

    /// The path of the table below the results directory, without the ending.
    pub const TABLE: &str = "policy/cuts";
    /// The name of the table in the directory of a policy.
    pub const NAME: &str = "cuts";
    /// The columns before the slopes, in order.
    pub const COLUMNS: [&str; 4] = ["node", "iteration", "pass", "intercept"];

    /// The column of the slopes of a state.
    pub fn slope(state: &str) -> String {
        format!("slope:{state}")
    }

    /// The columns of the table of a policy with these states; `name` is its path without the ending.
    pub fn schema<'a>(
        name: &'static str,
        states: impl IntoIterator<Item = &'a str>,
    ) -> TableSchema {
        let meanings = [
            (Kind::Text, "node whose cost to go the cut is below"),
            (Kind::Integer, "iteration that made it, from 1"),
            (Kind::Integer, "forward pass of that iteration, from 1"),
            (Kind::Number, "value of the cut where all states are zero"),
        ];
        let columns = COLUMNS.into_iter().zip(meanings);
        let columns = columns.map(|(name, (kind, meaning))| Column::new(name, kind, meaning));
        let slopes = states.into_iter().map(|state| {
            let meaning = format!("how the cut changes with state {state}");
            Column::new(slope(state), Kind::Number, meaning)
        });
        TableSchema::new(name, columns.chain(slopes).collect())
    }
}
