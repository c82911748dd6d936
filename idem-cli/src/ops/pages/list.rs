//! The records of one standing, by age.

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use idem::record::Standing;
use serde::Deserialize;

use super::row::Row;
use super::{Frame, page};
use crate::ops::Ops;
use crate::ops::gather::gather;
use crate::ops::time::Moment;
use crate::ops::words;

/// How many records a page has.
const ROWS: usize = 50;

#[derive(Debug, Deserialize)]
pub(in crate::ops) struct Wanted {
    standing: Option<String>,
    operation: Option<String>,
    page: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "list.html")]
struct List {
    frame: Frame,
    now: Moment,
    standing: Standing,
    /// Every standing, to choose another, and whether it is this one.
    standings: Vec<(&'static str, &'static str, bool)>,
    slug: &'static str,
    name: &'static str,
    meaning: &'static str,
    operation: String,
    rows: Vec<Row>,
    /// How many were read.
    total: usize,
    complete: bool,
    /// Counted from 1.
    number: usize,
    pages: usize,
}

/// `GET /records`
pub(in crate::ops) async fn show(
    State(ops): State<Ops>,
    frame: Frame,
    Query(wanted): Query<Wanted>,
) -> Response {
    let standing = wanted.standing.as_deref().and_then(words::from_slug);
    let standing = standing.unwrap_or(Standing::Unknown);
    let operation = wanted.operation.filter(|operation| !operation.is_empty());
    let gathered = match ops.admin() {
        Ok(admin) => gather(admin, standing, operation.as_deref()).await,
        Err(error) => Err(error),
    };
    let gathered = match gathered {
        Ok(gathered) => gathered,
        Err(error) => return frame.failed(&error),
    };
    let total = gathered.records.len();
    let pages = total.div_ceil(ROWS).max(1);
    let number = wanted.page.and_then(|page| page.parse::<usize>().ok());
    let number = number.unwrap_or(1).clamp(1, pages);
    let rows = gathered
        .records
        .iter()
        .skip((number - 1) * ROWS)
        .take(ROWS)
        .map(|record| Row::new(record, standing, gathered.now_us))
        .collect();
    let list = List {
        frame,
        now: Moment::new(gathered.now_us, gathered.now_us),
        standing,
        standings: Standing::ALL
            .map(|other| (words::slug(other), words::name(other), other == standing))
            .to_vec(),
        slug: words::slug(standing),
        name: words::name(standing),
        meaning: words::meaning(standing),
        operation: operation.unwrap_or_default(),
        rows,
        total,
        complete: gathered.complete,
        number,
        pages,
    };
    page(StatusCode::OK, &list)
}
