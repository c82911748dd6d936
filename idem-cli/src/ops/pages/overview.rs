//! The first page: is anything stuck, for how long, and why.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use idem::Error;
use idem::admin::Admin;
use idem::record::{Record, Standing};
use idem::store::Counts;
use serde::Deserialize;

use super::row::Row;
use super::{Frame, page};
use crate::ops::Ops;
use crate::ops::gather::{Gathered, gather, since};
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
}

/// Reads what is open, which is found without reading what has finished.
async fn look(admin: &Admin) -> Result<Look, Error> {
    let (counts, unknown, lapsed, running) = tokio::try_join!(
        admin.counts(false),
        gather(admin, Standing::Unknown, None),
        gather(admin, Standing::Lapsed, None),
        gather(admin, Standing::InProgress, None),
    )?;
    Ok(Look {
        counts,
        unknown,
        lapsed,
        running,
    })
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
