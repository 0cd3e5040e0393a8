//! Linear expressions: `[±] term {± term}`, where a term is `[number *] name(id[, block])` or a number.

use crate::hydrothermal::number::Id;

/// An expression as it is written.
#[derive(Debug, PartialEq)]
pub(super) struct Expression<'t> {
    pub(super) terms: Vec<WrittenTerm<'t>>,
    /// The sum of terms that are numbers.
    pub(super) constant: f64,
}

/// A term of an expression: factor, name of the variable, number of the thing, and block.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenTerm<'t> {
    pub(super) factor: f64,
    pub(super) name: &'t str,
    pub(super) id: Id,
    pub(super) block: Option<Id>,
}

/// The expression of a text, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Expression<'_>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut found = Expression {
        terms: Vec::new(),
        constant: 0.0,
    };
    let mut first = true;
    loop {
        let sign = match reader.peek() {
            None if first => return Err("the expression is empty".to_owned()),
            None => break,
            Some('+') => reader.skip(1.0),
            Some('-') => reader.skip(-1.0),
            Some(_) if first => 1.0,
            Some(_) => return Err(reader.expected("+ or - between terms")),
        };
        reader.term(sign, &mut found)?;
        first = false;
    }
    if found.terms.is_empty() {
        return Err("the expression has no variable".to_owned());
    }
    Ok(found)
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

    /// The longest text from here whose letters all fit.
    fn while_fits(&mut self, fits: impl Fn(char) -> bool) -> &'t str {
        self.peek();
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
        if self.peek() == Some(mark) {
            self.skip(());
            return Ok(());
        }
        Err(self.expected(&format!("\"{mark}\"")))
    }

    fn term(&mut self, sign: f64, found: &mut Expression<'t>) -> Result<(), String> {
        let mut factor = sign;
        let starts = |letter: char| letter.is_ascii_digit() || letter == '.';
        if self.peek().is_some_and(starts) {
            factor *= self.number()?;
            if self.peek() != Some('*') {
                found.constant += factor;
                return Ok(());
            }
            self.skip(());
        }
        let starts = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        if !self.peek().is_some_and(starts) {
            return Err(self.expected("the name of a variable"));
        }
        let name = self.while_fits(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        self.mark('(')?;
        let id = self.whole()?;
        let block = if self.peek() == Some(',') {
            self.skip(());
            Some(self.whole()?)
        } else {
            None
        };
        self.mark(')')?;
        found.terms.push(WrittenTerm {
            factor,
            name,
            id,
            block,
        });
        Ok(())
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
        if self.peek() == Some('-') {
            self.skip(());
        }
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

    fn term(factor: f64, name: &str, id: Id, block: Option<Id>) -> WrittenTerm<'_> {
        WrittenTerm {
            factor,
            name,
            id,
            block,
        }
    }

    #[test]
    fn terms_have_signs_factors_and_blocks() {
        let found = parse(" -2.5e1*a_b(3) + c( -1 , 2 )-.5 * d(0)+ 4 ").expect("it is sound");
        assert_eq!(
            found.terms,
            [
                term(-25.0, "a_b", 3, None),
                term(1.0, "c", -1, Some(2)),
                term(-0.5, "d", 0, None)
            ]
        );
        assert_eq!(found.constant, 4.0);
    }

    #[test]
    fn what_is_no_expression_is_refused_where_it_goes_wrong() {
        for (text, what) in [
            ("", "the expression is empty"),
            ("3", "no variable"),
            ("a(1) b(2)", "+ or - between terms is expected at letter 6"),
            ("2 a(1)", "+ or - between terms is expected at letter 3"),
            ("2 * * a(1)", "name of a variable is expected at letter 5"),
            ("a(x)", "a whole number of 32 bits is expected at letter 3"),
            ("a(1", "\")\" is expected at the end"),
            ("a(1) >= 3", "+ or - between terms"),
            ("a(1) + ", "the name of a variable is expected at the end"),
            ("a(99999999999)", "32 bits"),
            ("1.2.3*a(1)", "no number"),
            ("1e400*a(1)", "no number"),
            ("ä(1)", "the name of a variable is expected at letter 1"),
            ("@p * a(1)", "the name of a variable"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
