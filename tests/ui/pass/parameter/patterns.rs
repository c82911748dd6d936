#![deny(warnings)]

use idem::{Error, idempotent};

struct Order {
    id: u32,
    lines: (u32, [u32; 3]),
    note: String,
}

struct Wrapper<T>(T);

#[idempotent(key = (id, first), payload = (last, text, whole.0), ttl = "1h")]
async fn patterns(
    Order {
        id,
        lines: (_, [first, .., mut last]),
        note: text,
        ..
    }: Order,
    Wrapper(Wrapper(inner)): Wrapper<Wrapper<u32>>,
    whole @ (_, _): (u32, u32),
    (): (),
    _: Wrapper<String>,
) -> Result<String, Error> {
    last += inner + whole.1;
    Ok(format!("{id}{first}{last}{text}"))
}

#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
async fn by_reference(id: u32, ref note: String, &size: &usize) -> Result<usize, Error> {
    Ok(note.len() + size + id as usize)
}

#[idempotent(key = "all of them".len(), ttl = "1h")]
async fn no_parameters() -> Result<u32, Error> {
    Ok(1)
}

pub fn main() {
    let order = Order {
        id: 1,
        lines: (1, [1, 2, 3]),
        note: String::new(),
    };
    drop(patterns(
        order,
        Wrapper(Wrapper(1)),
        (1, 2),
        (),
        Wrapper(String::new()),
    ));
    drop(by_reference(1, String::new(), &2));
    drop(no_parameters());
}
