//! `idem migrate`: the only command that creates anything.

use serde_json::json;

use crate::args::Global;
use crate::connect;
use crate::failure::Failure;
use crate::output::{print, print_json};

pub(crate) async fn run(global: &Global) -> Result<(), Failure> {
    let has_schema = connect::migrate(global).await?;
    if global.json {
        return print_json(&json!({"has_schema": has_schema}));
    }
    print(if has_schema {
        "the schema is up to date\n"
    } else {
        "Redis has no schema: there was nothing to do\n"
    })
}
