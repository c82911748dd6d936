//! Medians and spreads.

use std::fmt;

/// The middle, the least and the greatest of some figures.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of at least one figure; of none, all three are `NaN`.
    #[must_use]
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut all: Vec<_> = figures.into_iter().collect();
        all.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| all.get(index).copied().unwrap_or(f64::NAN);
        let (upper, lower) = (all.len() / 2, all.len().saturating_sub(1) / 2);
        Self {
            median: f64::midpoint(at(lower), at(upper)),
            min: at(0),
            max: at(all.len().saturating_sub(1)),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:5.2} ({:.2} to {:.2})",
            self.median, self.min, self.max
        )
    }
}

/// A number for people: whole thousands apart, or three digits.
#[must_use]
pub fn number(figure: f64) -> String {
    if figure < 100.0 {
        return format!("{figure:.1}");
    }
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
