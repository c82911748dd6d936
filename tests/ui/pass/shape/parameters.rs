#![deny(warnings)]

use idem::{Error, idempotent};

struct Order {
    id: u32,
    total: u32,
}

#[idempotent(key = (a, id, r#type), ttl = "1h30m")]
async fn patterns(
    (a, mut b): (u32, u32),
    Order { id, .. }: Order,
    [first, _]: [u32; 2],
    r#type: u32,
    _: String,
    _permit: String,
    #[cfg(any())] gone: Missing,
    #[cfg(not(any()))] here: u32,
) -> Result<u32, Error> {
    b += first;
    Ok(a + b + id + r#type + here)
}

#[idempotent(key = (value, N), ttl = "1h", name = "generic")]
async fn generic<T, const N: usize>(
    value: T,
    accept: impl Fn(&T) -> bool + Send + Sync + 'static,
    callback: fn(&str) -> usize,
) -> Result<usize, Error>
where
    T: serde::Serialize + Send + 'static,
{
    Ok(if accept(&value) { callback("x") + N } else { 0 })
}

pub fn main() {
    let order = Order { id: 1, total: 2 };
    let _ = order.total;
    drop(patterns(
        (1, 2),
        order,
        [1, 2],
        3,
        String::new(),
        String::new(),
        4,
    ));
    drop(generic::<u8, 3>(1, |value| *value > 0, str::len));
}
