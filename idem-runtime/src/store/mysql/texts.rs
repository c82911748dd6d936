//! Statements with the names of their tables and the values of a request.

use sqlx::AssertSqlSafe;
use sqlx::mysql::{MySql, MySqlArguments};
use sqlx::query::Query;

use super::statements::Statements;
use super::{Dialect, rows};
use crate::clock::Clock;
use crate::record::Record;
use crate::store::sql::Ended;
use crate::store::{Complete, Reserve};
use crate::sync::{Arc, AtomicI64};

/// What statements are made of.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) statements: Statements,
    pub(super) dialect: Dialect,
    pub(super) clock: Option<Arc<dyn Clock>>,
    /// `max_allowed_packet` as it was last seen; 0 before that.
    pub(super) packet: AtomicI64,
}

impl Texts {
    pub(super) fn query<'q>(&self, sql: &'q str) -> Query<'q, MySql, MySqlArguments> {
        // Only validated names were filled into the texts.
        sqlx::query(AssertSqlSafe(sql))
    }

    pub(super) fn insert<'q>(
        &self,
        sql: &'q str,
        lease_us: Option<i64>,
        request: &'q Reserve,
    ) -> Query<'q, MySql, MySqlArguments> {
        rows::bind_request(self.query(sql), request)
            .bind(request.claim.as_bytes().as_slice())
            .bind(lease_us)
            .bind(
                request
                    .version
                    .as_ref()
                    .map(|version| version.as_bytes().to_vec()),
            )
            .bind(self.clock_us())
    }

    /// Binds a record, and the one that it is written over.
    pub(super) fn swap<'q>(
        &'q self,
        seen: &'q Record,
        next: &'q Record,
    ) -> Query<'q, MySql, MySqlArguments> {
        rows::bind(self.query(&self.statements.swap), next)
            .bind(next.id.as_bytes().as_slice())
            .bind(seen.state.code())
            .bind(seen.fence)
            .bind(seen.claim.as_bytes().as_slice())
            .bind(seen.lease_until_us)
    }

    /// Binds the end of an attempt.
    pub(super) fn complete<'q>(
        &'q self,
        request: &'q Complete,
    ) -> Query<'q, MySql, MySqlArguments> {
        let ended = Ended::of(&request.ending);
        let (holder, clock_us) = (&request.holder, self.clock_us());
        self.query(&self.statements.complete)
            .bind(ended.applies())
            .bind(clock_us)
            .bind(request.ttl_us)
            .bind(clock_us)
            .bind(request.ttl_us)
            .bind(clock_us)
            .bind(ended.reason)
            .bind(ended.codec)
            .bind(ended.failed)
            .bind(ended.bytes)
            .bind(ended.digest)
            .bind(ended.state)
            .bind(holder.id.as_bytes().as_slice())
            .bind(holder.claim.as_bytes().as_slice())
            .bind(holder.fence)
    }

    pub(super) fn clock_us(&self) -> Option<i64> {
        self.clock.as_ref().map(|clock| clock.unix_us())
    }
}
