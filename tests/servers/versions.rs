//! Versions of one key in every order, on each server.

use crate::orders;
use crate::place::{Server, on_each_server, prefix};

on_each_server! {
    and redis:
    in_every_order_what_is_applied_only_rises,
    at_once_in_every_order_what_is_applied_only_rises,
}

async fn in_every_order_what_is_applied_only_rises(server: Server) {
    let builder = server.open(&server.url(), &prefix(), 4).await;
    orders::one_by_one(&builder.build().await.unwrap()).await;
}

async fn at_once_in_every_order_what_is_applied_only_rises(server: Server) {
    let builder = server.open(&server.url(), &prefix(), 4).await;
    orders::at_once(&builder.build().await.unwrap()).await;
}
