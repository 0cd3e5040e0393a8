//! Linear expressions and relations between them:
//!
//! ```text
//! relation = side [("<=" | ">=" | "==") side]
//! side     = [±] term {± term}
//! term     = [number *] [@parameter *] variable | [number *] @name | [number *] "(" side ")" | number
//! variable = name "(" id [, block] [, "bus=" id] ")" | name "(" "source_bus=" id, "target_bus=" id ")"
//! ```

use crate::hydrothermal::files::generic::ConstraintSense;
use crate::hydrothermal::number::Id;

/// The deepest nesting of parentheses.
const DEEPEST: usize = 32;

/// Both sides of a relation, or an expression alone.
#[derive(Debug, PartialEq)]
pub(super) struct Relation<'t> {
    pub(super) left: Vec<WrittenTerm<'t>>,
    pub(super) right: Option<(ConstraintSense, Vec<WrittenTerm<'t>>)>,
}

/// A term as it is written, with its parentheses multiplied out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenTerm<'t> {
    pub(super) factor: f64,
    pub(super) operand: Operand<'t>,
}

/// The operand of a term beside its factor.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand<'t> {
    /// Nothing: the term is a number.
    Number,
    /// A parameter or an expression of this name.
    Named(&'t str),
    /// A variable, times a parameter if it has one.
    Variable {
        parameter: Option<&'t str>,
        variable: WrittenVariable<'t>,
    },
}

/// A variable as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenVariable<'t> {
    pub(super) name: &'t str,
    pub(super) of: WrittenThing,
    pub(super) block: Option<Id>,
    /// The bus that a part of the thing feeds.
    pub(super) bus: Option<Id>,
}

/// The thing that has a variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WrittenThing {
    /// By its number.
    Numbered(Id),
    /// The line between two buses, source and target.
    Between(Id, Id),
}

/// The relation of a text, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Relation<'_>, String> {
    let mut reader = Reader { text, at: 0 };
    if reader.peek().is_none() {
        return Err("the expression is empty".to_owned());
    }
    let left = reader.side(1.0, 0)?;
    let Some(sense) = reader.sense()? else {
        return Ok(Relation { left, right: None });
    };
    let right = reader.side(1.0, 0)?;
    if reader.sense()?.is_some() {
        return Err(
            "one relation is possible: give both bounds in the table of bounds, or two constraints"
                .to_owned(),
        );
    }
    Ok(Relation {
        left,
        right: Some((sense, right)),
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// The next letter that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// Goes past a letter of one byte; gives `value`.
    fn skip<T>(&mut self, value: T) -> T {
        self.at += 1;
        value
    }

    /// Goes past a letter if it comes next.
    fn passes(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        if found {
            self.skip(());
        }
        found
    }

    /// The longest text from here whose letters all fit.
    fn while_fits(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find(|letter| !fits(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn expected(&mut self, what: &str) -> String {
        self.peek();
        let column = self.text[..self.at].chars().count() + 1;
        let rest: String = self.text[self.at..].chars().take(20).collect();
        if rest.is_empty() {
            return format!("{what} is expected at the end");
        }
        format!("{what} is expected at letter {column}, \"{rest}\" is found")
    }

    fn mark(&mut self, mark: char) -> Result<(), String> {
        if self.passes(mark) {
            return Ok(());
        }
        Err(self.expected(&format!("\"{mark}\"")))
    }

    /// The relation that comes next; none at the end.
    fn sense(&mut self) -> Result<Option<ConstraintSense>, String> {
        if self.peek().is_none() {
            return Ok(None);
        }
        for (text, sense) in [
            ("<=", ConstraintSense::AtMost),
            (">=", ConstraintSense::AtLeast),
            ("==", ConstraintSense::Equal),
        ] {
            if self.text[self.at..].starts_with(text) {
                self.at += text.len();
                return Ok(Some(sense));
            }
        }
        if self
            .peek()
            .is_some_and(|letter| matches!(letter, '<' | '>' | '='))
        {
            return Err(self.expected("<=, >= or =="));
        }
        Err(self.expected("+ or - between terms"))
    }

    /// Terms up to something that is neither + nor -.
    fn side(&mut self, factor: f64, depth: usize) -> Result<Vec<WrittenTerm<'t>>, String> {
        let mut terms = Vec::new();
        let mut first = true;
        loop {
            let sign = match self.peek() {
                Some('+') => self.skip(1.0),
                Some('-') => self.skip(-1.0),
                _ if first => 1.0,
                _ => return Ok(terms),
            };
            self.term(sign * factor, depth, &mut terms)?;
            first = false;
        }
    }

    fn term(
        &mut self,
        mut factor: f64,
        depth: usize,
        terms: &mut Vec<WrittenTerm<'t>>,
    ) -> Result<(), String> {
        let starts = |letter: char| letter.is_ascii_digit() || letter == '.';
        if self.peek().is_some_and(starts) {
            factor *= self.number()?;
            if !self.passes('*') {
                let operand = Operand::Number;
                terms.push(WrittenTerm { factor, operand });
                return Ok(());
            }
        }
        let operand = match self.peek() {
            Some('(') if depth == DEEPEST => {
                return Err(format!("at most {DEEPEST} nested parentheses are possible"));
            }
            Some('(') => {
                self.skip(());
                terms.extend(self.side(factor, depth + 1)?);
                return self.mark(')');
            }
            Some('@') => self.named()?,
            _ => Operand::Variable {
                parameter: None,
                variable: self.variable()?,
            },
        };
        terms.push(WrittenTerm { factor, operand });
        Ok(())
    }

    /// `@name`, or `@name * variable`.
    fn named(&mut self) -> Result<Operand<'t>, String> {
        self.skip(());
        let Some(name) = self.word() else {
            return Err(self.expected("the name of a parameter or expression, right after @,"));
        };
        if !self.passes('*') {
            return Ok(Operand::Named(name));
        }
        if matches!(self.peek(), Some('@' | '(')) {
            return Err(self.expected(&format!("a variable after @{name} *")));
        }
        Ok(Operand::Variable {
            parameter: Some(name),
            variable: self.variable()?,
        })
    }

    /// The name that begins right here; none if there is none.
    fn word(&mut self) -> Option<&'t str> {
        let first = self.text[self.at..].chars().next()?;
        let starts = first.is_ascii_alphabetic() || first == '_';
        starts.then(|| self.while_fits(|letter| letter.is_ascii_alphanumeric() || letter == '_'))
    }

    fn variable(&mut self) -> Result<WrittenVariable<'t>, String> {
        self.peek();
        let Some(name) = self.word() else {
            return Err(self.expected("the name of a variable"));
        };
        self.mark('(')?;
        if let Some(of) = self.between()? {
            return Ok(WrittenVariable {
                name,
                of,
                block: None,
                bus: None,
            });
        }
        let of = WrittenThing::Numbered(self.whole()?);
        let (mut block, mut bus) = (None, None);
        while bus.is_none() && self.passes(',') {
            self.peek();
            match self.word() {
                Some("bus") => {
                    self.mark('=')?;
                    bus = Some(self.whole()?);
                }
                Some(word) => {
                    self.at -= word.len();
                    return Err(self.expected("a block, or bus=,"));
                }
                None if block.is_none() => block = Some(self.whole()?),
                None => return Err(self.expected("bus=")),
            }
        }
        self.mark(')')?;
        Ok(WrittenVariable {
            name,
            of,
            block,
            bus,
        })
    }

    /// `source_bus=…, target_bus=…)`, in either order; none if something else comes.
    fn between(&mut self) -> Result<Option<WrittenThing>, String> {
        self.peek();
        if !self.text[self.at..].starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Ok(None);
        }
        let (mut source, mut target) = (None, None);
        for mark in [',', ')'] {
            self.peek();
            let start = self.at;
            let end = match self.word() {
                Some("source_bus") if source.is_none() => &mut source,
                Some("target_bus") if target.is_none() => &mut target,
                _ => {
                    self.at = start;
                    return Err(self.expected("a whole number, or source_bus= and target_bus=,"));
                }
            };
            self.mark('=')?;
            *end = Some(self.whole()?);
            self.mark(mark)?;
        }
        Ok(source
            .zip(target)
            .map(|(source, target)| WrittenThing::Between(source, target)))
    }

    /// A number without a sign: digits, a point, an exponent.
    fn number(&mut self) -> Result<f64, String> {
        self.peek();
        let start = self.at;
        let digit = |letter: char| letter.is_ascii_digit() || letter == '.';
        self.while_fits(digit);
        let exponent = self.text[self.at..].strip_prefix(['e', 'E']);
        let digits = exponent.map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        if let Some(digits) = digits.filter(|rest| rest.starts_with(|l: char| l.is_ascii_digit())) {
            self.at = self.text.len() - digits.len();
            self.while_fits(|letter| letter.is_ascii_digit());
        }
        let text = &self.text[start..self.at];
        let value = text.parse::<f64>().ok();
        value
            .filter(|value| *value <= cobre_sddp::LARGEST)
            .ok_or_else(|| format!("\"{text}\" is no number that can be used"))
    }

    fn whole(&mut self) -> Result<Id, String> {
        self.peek();
        let start = self.at;
        self.passes('-');
        self.while_fits(|letter| letter.is_ascii_digit());
        let text = &self.text[start..self.at];
        text.parse().map_err(|_| {
            self.at = start;
            self.expected("a whole number of 32 bits")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A side in short: factor, parameter, name, number, block and bus of each term.
    fn shown(terms: &[WrittenTerm<'_>]) -> String {
        let shown = terms.iter().map(|term| {
            let factor = term.factor;
            match &term.operand {
                Operand::Number => format!("{factor}"),
                Operand::Named(name) => format!("{factor} @{name}"),
                Operand::Variable {
                    parameter,
                    variable,
                } => {
                    let parameter = parameter.map_or(String::new(), |name| format!("@{name} "));
                    let WrittenVariable {
                        name,
                        of,
                        block,
                        bus,
                    } = variable;
                    let of = match of {
                        WrittenThing::Numbered(id) => format!("{id}"),
                        WrittenThing::Between(source, target) => format!("{source}-{target}"),
                    };
                    let part = |mark: &str, id: &Option<Id>| {
                        id.map_or(String::new(), |id| format!(" {mark}{id}"))
                    };
                    format!(
                        "{factor} {parameter}{name} {of}{}{}",
                        part("", block),
                        part("bus ", bus)
                    )
                }
            }
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn terms_have_signs_factors_and_blocks() {
        let found = parse(" -2.5e1*a_b(3) + c( -1 , 2 )-.5 * d(0)+ 4 ").expect("it is sound");
        assert_eq!(shown(&found.left), "-25 a_b 3; 1 c -1 2; -0.5 d 0; 4");
        assert_eq!(found.right, None);
    }

    #[test]
    fn relations_have_parameters_groups_and_buses() {
        let found = parse(
            "2 * @p * a(1, 0, bus=7) - 3*(b(2, bus = 4) - (@e + c(source_bus=1, target_bus=2))) <= @q - 5 * @e",
        )
        .expect("it is sound");
        assert_eq!(
            shown(&found.left),
            "2 @p a 1 0 bus 7; -3 b 2 bus 4; 3 @e; 3 c 1-2"
        );
        let (sense, right) = found.right.expect("it is a relation");
        assert_eq!(sense, ConstraintSense::AtMost);
        assert_eq!(shown(&right), "1 @q; -5 @e");
        let found = parse("l(target_bus=2,source_bus=1)>=30").expect("it is sound");
        assert_eq!(shown(&found.left), "1 l 1-2");
    }

    #[test]
    fn what_is_no_expression_is_refused_where_it_goes_wrong() {
        let nested = "(".repeat(40);
        for (text, what) in [
            ("", "the expression is empty"),
            ("a(1) b(2)", "+ or - between terms is expected at letter 6"),
            ("2 a(1)", "+ or - between terms is expected at letter 3"),
            ("2 * * a(1)", "name of a variable is expected at letter 5"),
            (
                "a(x)",
                "source_bus= and target_bus=, is expected at letter 3",
            ),
            ("a(1", "\")\" is expected at the end"),
            ("a(1) + ", "the name of a variable is expected at the end"),
            ("a(99999999999)", "32 bits"),
            ("1.2.3*a(1)", "no number"),
            ("1e400*a(1)", "no number"),
            ("ä(1)", "the name of a variable is expected at letter 1"),
            ("a(1) >= ", "the name of a variable is expected at the end"),
            ("a(1) < 3", "<=, >= or == is expected at letter 6"),
            ("1 <= a(1) <= 3", "one relation is possible"),
            ("@p * @q", "a variable after @p * is expected"),
            ("@ p * a(1)", "right after @"),
            ("@p * (a(1) + b(1))", "a variable after @p *"),
            ("a(1) / 2", "+ or - between terms"),
            ("a(1, 2, 3)", "bus= is expected"),
            ("a(1, node=3)", "a block, or bus=, is expected at letter 6"),
            ("a(source_bus=1)", "\",\" is expected"),
            (&nested, "nested parentheses"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
