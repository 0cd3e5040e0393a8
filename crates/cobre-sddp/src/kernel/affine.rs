//! Affine functions of the parameters of a solve: numbers that presolve knows.

/// constant + Σ coefficient × parameter. The parameters of a solve are the incoming states, after
/// them the values of its opening, and then those that are derived from both.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Affine {
    pub(super) constant: f64,
    /// Sorted by parameter, each at most once.
    pub(super) terms: Vec<(usize, f64)>,
}

/// The numbers of derived parameters begin here until all others are known.
pub(super) const DERIVED: usize = usize::MAX / 2;

impl Affine {
    /// Numbers derived parameters from `first` on.
    pub(super) fn number_derived(&mut self, first: usize) {
        for term in &mut self.terms {
            if term.0 >= DERIVED {
                term.0 = term.0 - DERIVED + first;
            }
        }
    }

    pub(super) fn constant(constant: f64) -> Self {
        Self {
            constant,
            terms: Vec::new(),
        }
    }

    pub(super) fn parameter(number: usize) -> Self {
        Self {
            constant: 0.0,
            terms: vec![(number, 1.0)],
        }
    }

    /// Adds `factor` × `other`.
    pub(super) fn add(&mut self, factor: f64, other: &Self) {
        self.constant += factor * other.constant;
        for &(number, coefficient) in &other.terms {
            match self.terms.binary_search_by_key(&number, |term| term.0) {
                Ok(at) => self.terms[at].1 += factor * coefficient,
                Err(at) => self.terms.insert(at, (number, factor * coefficient)),
            }
        }
    }

    /// Returns `factor` × `self`.
    pub(super) fn times(&self, factor: f64) -> Self {
        let mut product = Self::default();
        product.add(factor, self);
        product
    }

    /// The value for these parameters.
    pub(super) fn value(&self, parameters: &[f64]) -> f64 {
        let terms = self.terms.iter();
        terms.fold(self.constant, |sum, &(number, coefficient)| {
            sum + coefficient * parameters[number]
        })
    }

    /// The part that depends on the incoming states, the first parameters.
    pub(super) fn at_states(&self, states: &[f64]) -> f64 {
        let terms = self.terms.iter();
        let terms = terms.take_while(|term| term.0 < states.len());
        terms.fold(self.constant, |sum, term| sum + term.1 * states[term.0])
    }
}
