//! Pauses between tries: growing, and jittered so that waiters spread out.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// Returns the pause after the `number`th try: 10 ms doubling to 1 s, of which
/// between a half and all.
pub(crate) fn jittered(number: u32) -> Duration {
    let full = FIRST
        .saturating_mul(1 << number.saturating_sub(1).min(10))
        .min(LONGEST);
    spread(full)
}

/// Returns between a half and all of a pause, so that those who were started
/// together spread out.
pub(crate) fn spread(full: Duration) -> Duration {
    full / 2 + full.mul_f64(fraction() / 2.0)
}

/// Returns a random number in `0.0..1.0`; a predictable one would do too.
fn fraction() -> f64 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).ok();
    f64::from(u32::from_ne_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second() {
        for number in 0..40 {
            let pause = jittered(number);
            assert!(
                pause >= FIRST / 2 && pause <= LONGEST,
                "{number}: {pause:?}"
            );
        }
        assert!(jittered(20) >= LONGEST / 2);
    }
}
