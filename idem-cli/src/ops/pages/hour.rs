//! The last hour, minute by minute, as far as rows tell.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use idem::Error;
use idem::admin::Admin;
use idem::record::Standing;

use super::{Frame, page};
use crate::ops::Ops;
use crate::ops::gather::{Gathered, gather, since};
use crate::ops::plot::{self, Plot};
use crate::ops::time::Moment;
use crate::ops::words;

#[derive(Debug, Template)]
#[template(path = "hour.html")]
struct Hour {
    frame: Frame,
    now: Moment,
    plots: Vec<Plot>,
    minutes: Vec<String>,
    /// How many records the plots are of, if not of all.
    sample: Option<usize>,
    /// What the store would not give.
    unread: Vec<&'static str>,
}

impl Hour {
    /// Whether anything happened in a minute.
    fn is_busy(&self, minute: usize) -> bool {
        let happened = |plot: &Plot| plot.counts.get(minute).is_some_and(|count| *count > 0);
        self.plots.iter().any(happened)
    }
}

/// `GET /hour`
pub(in crate::ops) async fn show(State(ops): State<Ops>, frame: Frame) -> Response {
    let looked = match ops.admin() {
        Ok(admin) => look(admin).await,
        Err(error) => Err(error),
    };
    match looked {
        Ok(looked) => page(StatusCode::OK, &looked.into_page(frame)),
        Err(error) => frame.failed(&error),
    }
}

/// What the store said.
struct Look {
    open: [Gathered; 3],
    /// Those that ended, in the order of [`FINISHED`], as far as they were read.
    finished: [Option<Gathered>; 3],
}

const FINISHED: [Standing; 3] = [Standing::Completed, Standing::Released, Standing::Tombstone];

async fn look(admin: &Admin) -> Result<Look, Error> {
    let (unknown, lapsed, running) = tokio::try_join!(
        gather(admin, Standing::Unknown, None),
        gather(admin, Standing::Lapsed, None),
        gather(admin, Standing::InProgress, None),
    )?;
    // A store keeps no order of what has finished: it may read all of it to find
    // the few tombstones, and give up. One after the other, for its sake.
    let mut finished = [const { None }; 3];
    for (read, standing) in finished.iter_mut().zip(FINISHED) {
        *read = gather(admin, standing, None).await.ok();
    }
    Ok(Look {
        open: [unknown, lapsed, running],
        finished,
    })
}

impl Look {
    fn into_page(self, frame: Frame) -> Hour {
        let now_us = self.every().map(|gathered| gathered.now_us).max();
        let now_us = now_us.unwrap_or_default();
        let unread = FINISHED.iter().zip(&self.finished);
        Hour {
            frame,
            now: Moment::new(now_us, now_us),
            plots: self.plots(now_us),
            minutes: plot::minutes(now_us),
            sample: self.sample(),
            unread: unread
                .filter(|(_, read)| read.is_none())
                .map(|(standing, _)| words::name(*standing))
                .collect(),
        }
    }

    fn every(&self) -> impl Iterator<Item = &Gathered> {
        self.open.iter().chain(self.finished.iter().flatten())
    }

    fn plots(&self, now_us: i64) -> Vec<Plot> {
        let first = self
            .every()
            .flat_map(|gathered| &gathered.records)
            .filter(|record| record.attempt == 1)
            .map(|record| record.started_us);
        let ended = |read: &Option<Gathered>| -> Vec<i64> {
            let records = read.iter().flat_map(|gathered| &gathered.records);
            records.filter_map(|record| record.finished_us).collect()
        };
        let [unknown, ..] = &self.open;
        let unknown = unknown
            .records
            .iter()
            .map(|record| since(record, Standing::Unknown));
        let [completed, released, tombstones] = &self.finished;
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
        let records = self.every().map(|gathered| gathered.records.len()).sum();
        let complete = self.every().all(|gathered| gathered.complete);
        (!complete).then_some(records)
    }
}
