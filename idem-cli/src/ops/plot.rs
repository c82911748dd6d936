//! Counts per minute, drawn as bars.

use super::time;

/// How many minutes are shown; the last one is still going on.
pub(super) const MINUTES: usize = 60;
const MINUTE_US: i64 = 60_000_000;

/// How high a plot is drawn, in its own units.
const HEIGHT: u64 = 48;
/// How far bars are apart.
const PITCH: usize = 5;

/// How many of something there were in each of the last minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plot {
    pub(super) title: &'static str,
    /// The name of its colour.
    pub(super) class: &'static str,
    pub(super) counts: [u64; MINUTES],
}

/// A bar, in the units of its plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) x: usize,
    pub(super) y: u64,
    pub(super) height: u64,
    pub(super) minute: usize,
    pub(super) count: u64,
}

impl Plot {
    pub(super) fn new(
        title: &'static str,
        class: &'static str,
        times: impl Iterator<Item = i64>,
        now_us: i64,
    ) -> Self {
        let mut counts = [0; MINUTES];
        let last = now_us.div_euclid(MINUTE_US);
        for at in times {
            let ago = last.saturating_sub(at.div_euclid(MINUTE_US));
            if let Ok(ago) = usize::try_from(ago)
                && ago < MINUTES
            {
                counts[MINUTES - 1 - ago] += 1;
            }
        }
        Self {
            title,
            class,
            counts,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The most in one minute.
    pub(super) fn most(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn bars(&self) -> Vec<Bar> {
        let most = self.most().max(1);
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(minute, &count)| {
                // One is seen beside a thousand.
                let height = (count * HEIGHT / most).max(2);
                Bar {
                    x: minute * PITCH,
                    y: HEIGHT - height,
                    height,
                    minute,
                    count,
                }
            })
            .collect()
    }
}

/// When each of the minutes began, as an axis shows it.
pub(super) fn minutes(now_us: i64) -> Vec<String> {
    let last = now_us.div_euclid(MINUTE_US);
    (0..MINUTES)
        .rev()
        .map(|ago| {
            let ago = i64::try_from(ago).unwrap_or(0);
            time::minute(last.saturating_sub(ago).saturating_mul(MINUTE_US))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_in_its_minute_and_others_in_none() {
        let now = 1_767_225_630_000_000;
        let at = |seconds: i64| now - seconds * 1_000_000;
        let times = [
            at(0),
            at(29),
            at(31),
            at(-31),
            at(59 * 60),
            at(60 * 60),
            i64::MIN,
            i64::MAX,
        ];
        let plot = Plot::new("Calls", "calls", times.into_iter(), now);
        assert_eq!(plot.counts[59], 2, "the minute that goes on");
        assert_eq!(plot.counts[58], 1);
        assert_eq!(plot.counts[0], 1);
        assert_eq!(plot.total(), 4);
        assert_eq!(plot.most(), 2);
        assert_eq!(minutes(now).last().map(String::as_str), Some("00:00"));
        assert_eq!(minutes(now).len(), MINUTES);
    }

    #[test]
    fn the_highest_bar_fills_the_plot_and_the_lowest_is_seen() {
        let now = 1_767_225_630_000_000;
        let times = std::iter::repeat_n(now, 1_000).chain([now - 60_000_000]);
        let bars = Plot::new("Calls", "calls", times, now).bars();
        assert_eq!(bars.len(), 2);
        assert_eq!((bars[1].y, bars[1].height), (0, HEIGHT));
        assert_eq!((bars[0].y, bars[0].height), (HEIGHT - 2, 2));
    }
}
