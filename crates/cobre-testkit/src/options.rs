//! The command line of the program `rank`.

use crate::budget::Budget;
use crate::mutant::Fault;

/// Usage of `rank`.
pub const USAGE: &str = "usage: rank CONTRACT [--calls N] [--seed S] [--scratch DIR] \
                         [--mutant NAME]\n       rank --list";

/// The command line of `rank`.
#[derive(Debug)]
pub enum RankOptions {
    /// Print the names of the contracts and the mutants.
    List,
    /// Be one rank of a contract.
    Run {
        /// Which.
        contract: String,
        /// With what.
        budget: Budget,
        /// On a communicator with this fault.
        fault: Option<Fault>,
    },
}

impl RankOptions {
    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    /// A message that names the argument that is wrong.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        let mut contract = None;
        let mut budget = Budget::default();
        let mut fault = None;
        while let Some(argument) = arguments.next() {
            if argument == "--list" {
                return Ok(Self::List);
            }
            if !argument.starts_with("--") {
                if contract.replace(argument).is_some() {
                    return Err("one contract at a time".to_owned());
                }
                continue;
            }
            let value = arguments.next();
            let value = value.ok_or_else(|| format!("{argument} needs a value"))?;
            match argument.as_str() {
                "--calls" => budget.calls = number(&argument, &value)?,
                "--seed" => budget.seed = number(&argument, &value)?,
                "--scratch" => budget.scratch = Some(value.into()),
                "--mutant" => fault = Some(value.parse()?),
                _ => return Err(format!("no option is called {argument}")),
            }
        }
        Ok(Self::Run {
            contract: contract.ok_or("which contract?")?,
            budget,
            fault,
        })
    }
}

fn number<T: std::str::FromStr>(argument: &str, value: &str) -> Result<T, String> {
    let parsed = value.parse();
    parsed.map_err(|_| format!("{argument} {value}: not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<RankOptions, String> {
        RankOptions::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_contract_comes_with_its_budget_and_fault() {
        let line = "allreduce/types --calls 50 --seed 7 --scratch /tmp/x --mutant sum-reversed";
        let Ok(RankOptions::Run {
            contract,
            budget,
            fault,
        }) = parse(line)
        else {
            panic!("{line}");
        };
        assert_eq!(
            (contract.as_str(), budget.calls, budget.seed),
            ("allreduce/types", 50, 7)
        );
        assert_eq!(budget.scratch, Some("/tmp/x".into()));
        assert_eq!(fault, Some(Fault::SumReversed));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (line, named) in [
            ("", "which contract"),
            ("a b", "one contract"),
            ("a --calls", "--calls"),
            ("a --calls many", "many"),
            ("a --bogus 1", "--bogus"),
            ("a --mutant bogus", "bogus"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(named), "{line}: {error}");
        }
    }
}
