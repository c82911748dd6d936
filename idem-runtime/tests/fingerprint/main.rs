//! Proves that fingerprints are what `docs/fingerprint.md` says, for ever.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod vectors;
