#![deny(warnings)]

use std::sync::Arc;

use idem::{Engine, Error, Recovered, idempotent};

struct App {
    idem: Engine,
    tenant: Option<u32>,
}

impl App {
    fn key(&self, id: u32) -> String {
        format!("{id}")
    }

    #[idempotent(
        key = (self.key(id), -1 * id as i64, !id, [id, 2], Self::PLAIN),
        scope = self.tenant.map(|tenant| tenant + 1),
        payload = { let doubled = id * 2; doubled },
        label = format!("{id:>5}"),
        ttl = if id > 3 { Self::LONG } else { Self::SHORT },
        name = "app.expressions",
        engine = self.idem,
    )]
    async fn expressions(self: Arc<Self>, id: u32) -> Result<u32, Error> {
        Ok(id)
    }

    const PLAIN: bool = true;
    const LONG: std::time::Duration = std::time::Duration::from_secs(2);
    const SHORT: std::time::Duration = std::time::Duration::from_secs(1);
}

/// A key that is not `Sync`, and a payload that borrows what the body consumes.
#[idempotent(key = cell.get(), payload = (note, note.len()), ttl = "1h")]
async fn borrows(cell: std::cell::Cell<u32>, note: String) -> Result<String, Error> {
    drop(cell);
    Ok(note)
}

#[idempotent(
    key = id,
    ttl = "1h",
    on_unknown = recover(async move {
        if id == 0 {
            return Ok(Recovered::Done(id));
        }
        Err(std::fmt::Error)?
    }),
    on_error = store_text,
)]
async fn probed(id: u32) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    Ok(id)
}

pub fn main() {
    let _ = App::expressions;
    drop(borrows(std::cell::Cell::new(1), String::new()));
    drop(probed(1));
}
