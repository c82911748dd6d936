//! The first page: is anything stuck, for how long, and why.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use idem::admin::Admin;
use idem::record::{Record, Standing};
use idem::store::Counts;
use idem::{Error, StoreErrorKind};
use serde::Deserialize;

use super::row::Row;
use super::{Frame, page};
use crate::ops::Ops;
use crate::ops::gather::{Gathered, gather, since};
use crate::ops::plot::{self, Plot};
use crate::ops::time::{Moment, span};
use crate::ops::words;

/// How many records a table of the first page has.
const ROWS: usize = 20;
/// How often the page loads itself again, in seconds.
const REFRESH: u32 = 15;

#[derive(Debug, Deserialize)]
pub(in crate::ops) struct Wanted {
    refresh: Option<String>,
}

/// How many there are of one standing, and for how long.
#[derive(Debug)]
struct Tile {
    slug: &'static str,
    name: &'static str,
    count: u64,
    oldest: String,
}

#[derive(Debug, Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    refresh: u32,
    now: Moment,
    tiles: Vec<Tile>,
    verdict: String,
    calm: bool,
    stuck: Vec<Row>,
    /// How many more are stuck than are shown.
    more_stuck: u64,
    running: Vec<Row>,
    more_running: u64,
    plots: Vec<Plot>,
    minutes: Vec<String>,
    /// How many records the plots are of, if not of all.
    sample: Option<usize>,
    lists_finished: bool,
}

impl Overview {
    /// Whether anything happened in a minute.
    fn is_busy(&self, minute: usize) -> bool {
        self.plots
            .iter()
            .any(|plot| plot.counts.get(minute).is_some_and(|count| *count > 0))
    }
}

/// `GET /`
pub(in crate::ops) async fn show(
    State(ops): State<Ops>,
    frame: Frame,
    Query(wanted): Query<Wanted>,
) -> Response {
    let looked = match ops.admin() {
        Ok(admin) => look(admin).await,
        Err(error) => Err(error),
    };
    match looked {
        Ok(looked) => {
            let refresh = if wanted.refresh.as_deref() == Some("off") {
                0
            } else {
                REFRESH
            };
            page(StatusCode::OK, &looked.into_page(frame, refresh))
        }
        Err(error) => frame.failed(&error),
    }
}

/// What the store said.
struct Look {
    counts: Counts,
    unknown: Gathered,
    lapsed: Gathered,
    running: Gathered,
    /// Completed, tombstones, released; empty on a store that keeps no list of them.
    finished: [Gathered; 3],
    lists_finished: bool,
}

async fn look(admin: &Admin) -> Result<Look, Error> {
    let (counts, unknown, lapsed, running, completed, tombstones, released) = tokio::try_join!(
        admin.counts(false),
        gather(admin, Standing::Unknown, None),
        gather(admin, Standing::Lapsed, None),
        gather(admin, Standing::InProgress, None),
        gather_finished(admin, Standing::Completed),
        gather_finished(admin, Standing::Tombstone),
        gather_finished(admin, Standing::Released),
    )?;
    let finished = [completed, tombstones, released];
    let lists_finished = finished.iter().all(Option::is_some);
    Ok(Look {
        counts,
        unknown,
        lapsed,
        running,
        finished: finished.map(|gathered| gathered.unwrap_or_else(Gathered::none)),
        lists_finished,
    })
}

/// Reads finished records; none if the store keeps no list of them, as Redis.
async fn gather_finished(admin: &Admin, standing: Standing) -> Result<Option<Gathered>, Error> {
    match gather(admin, standing, None).await {
        Ok(gathered) => Ok(Some(gathered)),
        Err(Error::Store(error)) if error.kind() == StoreErrorKind::Misconfigured => Ok(None),
        Err(error) => Err(error),
    }
}

impl Look {
    fn into_page(self, frame: Frame, refresh: u32) -> Overview {
        let now_us = self.counts.now_us;
        let tiles = self.tiles();
        let stuck = self.stuck();
        let shown = stuck.len().min(ROWS);
        let all_stuck = self.counts.unknown.saturating_add(self.counts.lapsed);
        let running: Vec<_> = self
            .running
            .records
            .iter()
            .take(ROWS)
            .map(|record| Row::new(record, Standing::InProgress, now_us))
            .collect();
        Overview {
            frame,
            refresh,
            now: Moment::new(now_us, now_us),
            verdict: verdict(&tiles),
            calm: all_stuck == 0,
            more_stuck: all_stuck.saturating_sub(length(shown)),
            stuck: stuck.into_iter().take(ROWS).map(|(_, row)| row).collect(),
            more_running: self
                .counts
                .in_progress
                .saturating_sub(length(running.len())),
            running,
            plots: self.plots(),
            minutes: plot::minutes(now_us),
            sample: self.sample(),
            lists_finished: self.lists_finished,
            tiles,
        }
    }

    fn tiles(&self) -> Vec<Tile> {
        let now_us = self.counts.now_us;
        let tile = |standing, count, oldest: Option<i64>| Tile {
            slug: words::slug(standing),
            name: words::name(standing),
            count,
            oldest: oldest
                .map(|at| span(at.abs_diff(now_us)))
                .unwrap_or_default(),
        };
        let first = |gathered: &Gathered, standing| {
            gathered
                .records
                .first()
                .map(|record| since(record, standing))
        };
        vec![
            tile(
                Standing::Unknown,
                self.counts.unknown,
                self.counts.oldest_unknown_us,
            ),
            tile(
                Standing::Lapsed,
                self.counts.lapsed,
                first(&self.lapsed, Standing::Lapsed),
            ),
            tile(
                Standing::InProgress,
                self.counts.in_progress,
                first(&self.running, Standing::InProgress),
            ),
        ]
    }

    /// What is stuck, the longest first.
    fn stuck(&self) -> Vec<(i64, Row)> {
        let now_us = self.counts.now_us;
        let rows = |gathered: &Gathered, standing| -> Vec<(i64, Row)> {
            let row =
                |record: &Record| (since(record, standing), Row::new(record, standing, now_us));
            gathered.records.iter().take(ROWS).map(row).collect()
        };
        let mut stuck = rows(&self.unknown, Standing::Unknown);
        stuck.extend(rows(&self.lapsed, Standing::Lapsed));
        stuck.sort_by_key(|(since, _)| *since);
        stuck
    }

    fn plots(&self) -> Vec<Plot> {
        let now_us = self.counts.now_us;
        let open = [&self.unknown, &self.lapsed, &self.running];
        let [completed, tombstones, released] = &self.finished;
        let every = open.into_iter().chain(&self.finished);
        let first = every
            .flat_map(|gathered| &gathered.records)
            .filter(|record| record.attempt == 1)
            .map(|record| record.started_us);
        let ended = |gathered: &Gathered| -> Vec<i64> {
            gathered
                .records
                .iter()
                .filter_map(|record| record.finished_us)
                .collect()
        };
        let unknown = self
            .unknown
            .records
            .iter()
            .map(|record| since(record, Standing::Unknown));
        vec![
            Plot::new("First calls", "calls", first, now_us),
            Plot::new(
                "Answers recorded",
                "answers",
                ended(completed).into_iter(),
                now_us,
            ),
            Plot::new(
                "Released errors",
                "errors",
                ended(released).into_iter(),
                now_us,
            ),
            Plot::new(
                "Tombstones",
                "tombstones",
                ended(tombstones).into_iter(),
                now_us,
            ),
            Plot::new("Became unknown", "unknowns", unknown, now_us),
        ]
    }

    fn sample(&self) -> Option<usize> {
        let open = [&self.unknown, &self.lapsed, &self.running];
        let every: Vec<_> = open.into_iter().chain(&self.finished).collect();
        let records = every.iter().map(|gathered| gathered.records.len()).sum();
        (!every.iter().all(|gathered| gathered.complete)).then_some(records)
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The answer to "is anything stuck", as a sentence.
fn verdict(tiles: &[Tile]) -> String {
    let said: Vec<_> = tiles
        .iter()
        .take(2)
        .filter(|tile| tile.count > 0)
        .map(|tile| {
            let what = match (tile.slug, tile.count) {
                ("unknown", 1) => "1 outcome is unknown".to_owned(),
                ("unknown", count) => format!("{count} outcomes are unknown"),
                (_, 1) => "1 attempt has lapsed".to_owned(),
                (_, count) => format!("{count} attempts have lapsed"),
            };
            let oldest = &tile.oldest;
            match (tile.slug, tile.count) {
                _ if oldest.is_empty() => what,
                ("unknown", 1) => format!("{what}, for {oldest}"),
                ("unknown", _) => format!("{what}, the oldest for {oldest}"),
                (_, 1) => format!("{what}, begun {oldest} ago"),
                (_, _) => format!("{what}, the oldest begun {oldest} ago"),
            }
        })
        .collect();
    if said.is_empty() {
        "Nothing is stuck.".to_owned()
    } else {
        format!("{}.", said.join("; "))
    }
}
