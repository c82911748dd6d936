//! Statements with the names of their tables and the values of a request.

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;

use super::rows;
use super::statements::Statements;
use crate::clock::Clock;
use crate::record::Record;
use crate::store::sql::Ended;
use crate::store::{Complete, Reserve};
use crate::sync::Arc;
use crate::transition;

/// What statements are made of.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) statements: Statements,
    pub(super) named: bool,
    pub(super) clock: Option<Arc<dyn Clock>>,
}

impl Texts {
    pub(super) fn query<'q>(&self, sql: &'q str) -> Query<'q, Postgres, PgArguments> {
        // Only validated names were filled into the texts.
        sqlx::query(AssertSqlSafe(sql)).persistent(self.named)
    }

    /// Binds a reservation.
    pub(super) fn reserve<'q>(&'q self, request: &'q Reserve) -> Query<'q, Postgres, PgArguments> {
        rows::bind_request(self.query(&self.statements.reserve), request)
            .bind(request.lease_us)
            .bind(
                request
                    .version
                    .as_ref()
                    .map(|version| version.as_bytes().to_vec()),
            )
            .bind(self.clock_us())
    }

    /// Writes a record over another one, whose steps are gone if that begins a
    /// new life.
    pub(super) fn swap<'q>(
        &'q self,
        seen: &'q Record,
        next: &'q Record,
    ) -> Query<'q, Postgres, PgArguments> {
        let statements = &self.statements;
        let sql = if transition::begins_life(seen, next) {
            &statements.swap_life
        } else {
            &statements.swap
        };
        self.bind_swap(sql, seen, next)
    }

    /// Binds a record, and the one that it is written over.
    pub(super) fn bind_swap<'q>(
        &self,
        sql: &'q str,
        seen: &'q Record,
        next: &'q Record,
    ) -> Query<'q, Postgres, PgArguments> {
        rows::bind(self.query(sql), next)
            .bind(seen.state.code())
            .bind(seen.fence)
            .bind(seen.claim.as_bytes().as_slice())
            .bind(seen.lease_until_us)
    }

    /// Binds the end of an attempt.
    pub(super) fn complete<'q>(
        &'q self,
        request: &'q Complete,
    ) -> Query<'q, Postgres, PgArguments> {
        let ended = Ended::of(&request.ending);
        let holder = &request.holder;
        self.query(&self.statements.complete)
            .bind(holder.id.as_bytes().as_slice())
            .bind(holder.claim.as_bytes().as_slice())
            .bind(holder.fence)
            .bind(ended.state)
            .bind(request.ttl_us)
            .bind(ended.reason)
            .bind(ended.codec)
            .bind(ended.failed)
            .bind(ended.bytes)
            .bind(ended.digest)
            .bind(self.clock_us())
    }

    pub(super) fn clock_us(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.unix_us())
    }
}
