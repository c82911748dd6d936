//! What people write about a record, and read of it.

/// Text for operators, stored in clear, at most 128 bytes. Never in logs, so
/// `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// The most bytes that are kept.
    pub const MAX_LEN: usize = 128;

    /// Takes a text, cut to [`MAX_LEN`](Self::MAX_LEN), with a replacement
    /// character for each NUL.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        // Not every store takes a NUL in a text.
        let mut text = text.into().replace('\0', "\u{fffd}");
        text.truncate(text.floor_char_boundary(Self::MAX_LEN));
        Self(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Label(..)")
    }
}

/// Who changed a record by hand, and why. Stored in clear, for other operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    by: String,
    why: String,
}

impl Note {
    /// The most bytes that are kept of who.
    pub const MAX_BY: usize = 128;
    /// The most bytes that are kept of why.
    pub const MAX_WHY: usize = 1024;

    /// Takes both texts, cut to their limits; none if one is blank.
    #[must_use]
    pub fn new(by: &str, why: &str) -> Option<Self> {
        let cut = |text: &str, limit| {
            // Not every store takes a NUL in a text.
            let mut text = text.trim().replace('\0', "\u{fffd}");
            text.truncate(text.floor_char_boundary(limit));
            // Taken once more, as from a store, it is the same.
            text.truncate(text.trim_end().len());
            (!text.is_empty()).then_some(text)
        };
        Some(Self {
            by: cut(by, Self::MAX_BY)?,
            why: cut(why, Self::MAX_WHY)?,
        })
    }

    /// Returns who.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Returns why.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }
}
