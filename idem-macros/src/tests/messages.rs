//! One mistake, one message, which says what to write.

use super::errors;

const FREE: &str = "async fn charge(id: u32, order: Order) -> Result<u32, E> { go(id).await }";
const OK: &str = r#"key = id, ttl = "1h""#;

/// Expects exactly one message that holds `part`.
fn one(attr: &str, item: &str, part: &str) {
    let found = errors(attr, item);
    assert_eq!(found.len(), 1, "{attr} on {item}: {found:#?}");
    assert!(found[0].contains(part), "{part:?} is not in {:?}", found[0]);
}

/// The same with `extra` beside a valid key and ttl.
fn extra(extra: &str, part: &str) {
    one(&format!("{OK}, {extra}"), FREE, part);
}

/// The same with another function.
fn item(item: &str, part: &str) {
    one(OK, item, part);
}

#[test]
fn required_parameters() {
    one("", FREE, "`key` and `ttl` are required");
    one("key = id", FREE, "`ttl` is required: write `ttl = \"24h\"`");
    one(
        "ttl = \"1h\"",
        FREE,
        "`key` is required: write `key = order_id`",
    );
}

#[test]
fn words() {
    extra(
        "colour = red",
        "unknown parameter `colour`; the parameters are `key`, `ttl`",
    );
    extra("on_eror = store", "did you mean `on_error`?");
    extra("payloda = id", "did you mean `payload`?");
    one("kye = id, ttl = \"1h\"", FREE, "did you mean `key`?");
    one("key = id, tll = \"1h\"", FREE, "did you mean `ttl`?");
    extra("ttl = \"2h\"", "`ttl` is given twice");
    extra(
        "payload",
        "`payload` needs a value: write `payload = (amount, currency)`",
    );
    extra("payload =", "`payload` needs a value");
    extra("payload(id)", "`payload` needs a value");
    extra("\"x\"", "expected a parameter");
    one(
        "key = id ttl = \"1h\"",
        FREE,
        "expected a `,` before this parameter",
    );
    one(
        "key = id id, ttl = \"1h\"",
        FREE,
        "expected a `,` after the value",
    );
}

#[test]
fn guessed_words() {
    for (guess, meant) in [
        ("id", "name"),
        ("operation", "name"),
        ("tenant", "scope"),
        ("params", "payload"),
        ("fingerprint", "payload"),
        ("body", "payload"),
        ("store", "engine"),
        ("retry", "on_unknown"),
        ("timeout", "on_in_progress"),
        ("on_conflict", "on_in_progress"),
        ("revision", "version"),
        ("sequence", "version"),
        ("updated_at", "version"),
        ("on_outdated", "on_stale"),
    ] {
        extra(
            &format!("{guess} = x"),
            &format!("`{guess}` is called `{meant}` here"),
        );
    }
    one(
        "key = id, expires = \"1h\"",
        FREE,
        "`expires` is called `ttl` here",
    );
}

#[test]
fn durations() {
    for (ttl, part) in [
        ("\"24\"", "needs a unit"),
        ("60", "`ttl` needs a unit: write \"60s\""),
        ("\"0s\"", "longer than zero"),
        ("\"1.5h\"", "whole numbers"),
        ("\"99999999999w\"", "longer than can be counted"),
        ("\"24hours\"", "write `h`"),
        ("\"forever\"", "without quotes"),
        ("1.5", "takes a text with a unit"),
    ] {
        one(&format!("key = id, ttl = {ttl}"), FREE, part);
    }
    extra("lease = \"50ms\"", "at least 100 ms");
    extra("lease = 30", "`lease` takes a text with a unit");
    extra("max_run = \"5\"", "`max_run` needs a unit");
    extra("on_in_progress = wait(\"5\")", "`wait` needs a unit");
    extra(
        "on_in_progress = wait(\"0s\")",
        "`wait` must be longer than zero",
    );
}

#[test]
fn choices() {
    extra("on_error = \"store\"", "without quotes: `on_error = store`");
    extra("on_error = stor", "did you mean `store`?");
    extra("on_error = keep", "the choices are `store`, `store_text`");
    extra(
        "on_error = classify",
        "needs parentheses: write `classify(path::to::function)`",
    );
    extra("on_error = classify(a, b)", "`classify(path, store_text)`");
    extra("on_error = store(x)", "takes nothing in parentheses");
    extra("on_unknown = retry", "did you mean `rerun`?");
    extra("on_unknown = reject", "did you mean `refuse`?");
    extra("on_unknown = recover", "`recover` needs parentheses");
    extra("on_in_progress = refuse", "did you mean `reject`?");
    extra(
        "on_in_progress = wait",
        "`wait` needs parentheses: write `wait(\"30s\")`",
    );
    extra("on_cancel = abort", "did you mean `abandon`?");
    extra("on_missing_key = skip", "did you mean `run`?");
    extra(
        "version = order.at, on_stale = ignore",
        "did you mean `replay`?",
    );
    extra(
        "version = order.at, on_stale = replay(1)",
        "takes nothing in parentheses",
    );
}

#[test]
fn contradictions() {
    extra(
        "clone = order, on_cancel = abandon",
        "`clone` and `on_cancel = abandon` contradict",
    );
    one(
        "key = (id, order), ttl = \"1h\", on_missing_key = run",
        FREE,
        "for a key that is one `Option`",
    );
    extra("clone = order", "`order` does not borrow from the caller");
    one(
        &format!("{OK}, clone = note"),
        "async fn f(id: u32, note: Cow<'_, str>) -> Result<u32, E> { go() }",
        "`clone` is for `&self` and parameters of the form `note: &T`",
    );
    extra("clone = self", "`self` is no parameter");
    extra("clone = missing", "`missing` is no parameter");
    extra("payload = ()", "`payload = ()` compares nothing");
    for choice in ["error", "replay"] {
        let alone = format!("on_stale = {choice}");
        extra(&alone, "`on_stale` needs a version");
    }
    extra(
        "on_stale = replay, revision = id",
        "is called `version` here",
    );
}

#[test]
fn names() {
    extra("name = \"\"", "`name` is empty");
    extra("name = \"pay now\"", "only visible ASCII");
    extra("name = \"größe\"", "'ö'");
    extra(
        &format!("name = \"{}\"", "x".repeat(129)),
        "has 129 characters",
    );
    extra("name = charge", "takes a text in quotes");
    item(
        "async fn f(self) -> Result<u32, E> { go() }",
        "give this method a stable `name`",
    );
    for associated in [
        "async fn f() -> Result<Self, E> { go() }",
        "async fn f(id: u32) -> Result<u32, E> { Ok(id + Self::FEE) }",
    ] {
        item(associated, "give this method a stable `name`");
    }
    item(
        "async fn f<T>(id: u32) -> Result<u32, E> { go() }",
        "give this generic function",
    );
    item(
        "async fn f<const N: u8>(id: u32) -> Result<u32, E> { go() }",
        "give this generic function",
    );
    item(
        "async fn f(id: impl Id) -> Result<u32, E> { go() }",
        "give this generic function",
    );
}

#[test]
fn keys_that_differ_on_every_delivery() {
    for (key, part) in [
        ("Uuid::new_v4()", "`new_v4` is a new random id"),
        ("(id, Utc::now())", "`now` is the time of this delivery"),
        ("rand::random::<u64>()", "random value"),
        ("message.delivery_tag", "number of this delivery"),
        ("format!(\"{}\", job.attempt)", "the count of this attempt"),
    ] {
        one(&format!("key = {key}, ttl = \"1h\""), FREE, part);
    }
}

#[test]
fn versions_that_differ_on_every_delivery() {
    for (version, part) in [
        ("SystemTime::now()", "`now` is the time of this delivery"),
        (
            "(order.at, Uuid::now_v7().into_bytes())",
            "`now_v7` is a new id",
        ),
        (
            "job.attempt",
            "would run again: use what the sender stamped",
        ),
    ] {
        extra(&format!("version = {version}"), part);
    }
    extra("version = \"order.at\"", "without quotes: `order.at`");
}

#[test]
fn keys_that_never_differ() {
    for key in [
        "5",
        "\"daily report\"",
        "(1, \"a\")",
        "()",
        "&\"x\"",
        "(-1)",
    ] {
        one(
            &format!("key = {key}, ttl = \"1h\""),
            FREE,
            "this key is the same for every call",
        );
    }
    one(
        "key = \"order.id\", ttl = \"1h\"",
        FREE,
        "without quotes: `key = order.id`",
    );
    one(
        "key = \"id\", ttl = \"1h\"",
        FREE,
        "without quotes: `key = id`",
    );
}

#[test]
fn nothing_runs_before_the_call() {
    one(
        "key = fetch(id).await, ttl = \"1h\"",
        FREE,
        "`.await` in `key`",
    );
    one("key = (id, parse(id)?), ttl = \"1h\"", FREE, "`?` in `key`");
    extra("payload = { return Ok(1) }", "`return` in `payload`");
    extra("scope = loop { break 1 }", "`break` in `scope`");
    extra("label = name(id).await", "`.await` in `label`");
    extra("version = order.at()?", "`?` in `version`");
    extra("engine = find()?", "`?` in `engine`");
    extra(
        "on_unknown = recover(find(&id).await)",
        "leave out `.await`",
    );
    extra("on_unknown = recover(find(&id)?)", "`?` in `recover`");
    let attr = format!("{OK}, on_unknown = recover(async {{ Ok(find(&id).await?) }})");
    assert!(
        errors(&attr, FREE).is_empty(),
        "an async block has its own `?`"
    );
}

#[test]
fn borrows_under_finish() {
    item(
        "async fn f(id: &str) -> Result<u32, E> { go() }",
        "`clone = id`",
    );
    item(
        "async fn f(id: Cow<'_, str>) -> Result<u32, E> { go() }",
        "take it owned, or choose",
    );
    item(
        "async fn f(ref id: u32) -> Result<u32, E> { go() }",
        "`ref` borrows from the caller",
    );
    let named = format!("{OK}, name = \"a.b\"");
    one(
        &named,
        "async fn f(&self) -> Result<u32, E> { go() }",
        "take `self: Arc<Self>`",
    );
    let found = errors(
        &named,
        "async fn f(&self, id: &str) -> Result<u32, E> { go() }",
    );
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found
            .iter()
            .all(|message| message.contains("`clone = (self, id)`")),
        "{found:#?}"
    );
    one(
        &format!("{named}, clone = self"),
        "async fn f(&self, id: u32) -> Result<String, E> { Ok(format!(\"{self:?}\")) }",
        "write `{}` and pass `self`",
    );
}

#[test]
fn mutable_borrows() {
    let named = format!("{OK}, name = \"a.b\", on_cancel = abandon");
    for receiver in ["&mut self", "self: &mut Self", "self: Pin<&mut Self>"] {
        let item = format!("async fn f({receiver}) -> Result<u32, E> {{ go() }}");
        one(
            &named,
            &item,
            "changes through `&mut self` are not repeated",
        );
    }
    for (parameter, part) in [
        ("n: &mut u8", "`n` would not be changed"),
        ("_: &mut u8", "`_` would not be changed"),
        (
            "(a, b): (u8, &mut u8)",
            "this argument would not be changed",
        ),
    ] {
        let function = format!("async fn f({parameter}) -> Result<u32, E> {{ go() }}");
        item(&function, part);
    }
}

#[test]
fn recursion() {
    item(
        "async fn f(id: u32) -> Result<u32, E> { Box::pin(f(id)).await }",
        "cannot contain itself",
    );
    one(
        "key = id, ttl = \"1h\", name = \"a\"",
        "async fn f(self, id: u32) -> Result<u32, E> { Box::pin(self.f(id)).await }",
        "cannot contain itself",
    );
    for body in [
        "other.f(id).await",
        "m::f(id).await",
        "let f = g; f(id).await",
    ] {
        let item = format!("async fn f(id: u32) -> Result<u32, E> {{ {body} }}");
        assert!(errors(OK, &item).is_empty(), "{body}");
    }
}

#[test]
fn shapes_that_are_refused() {
    for (source, part) in [
        (
            "fn f(id: u32) -> Result<u32, E> { go() }",
            "needs an `async fn`",
        ),
        (
            "const fn f(id: u32) -> Result<u32, E> { go() }",
            "`const fn`",
        ),
        (
            "async unsafe fn f(id: u32) -> Result<u32, E> { go() }",
            "`unsafe fn` may not be replayed",
        ),
        (
            "async extern \"C\" fn f(id: u32) -> Result<u32, E> { go() }",
            "`extern` function",
        ),
        ("struct S { id: u32 }", "not on a struct"),
        ("pub enum S { A }", "not on an enum"),
        ("impl S { async fn f() {} }", "not on an `impl` block"),
        ("unsafe impl S for T {}", "not on an `impl` block"),
        ("mod m { }", "not on a module"),
        ("const X: u8 = 1;", "not on a constant"),
        (
            "fn f() -> Result<u32, E> { let body = async { go() }; return rt().block_on(body); }",
            "put `#[idempotent]` above that one",
        ),
        (
            "fn f(id: u32) -> BoxFuture<'static, Result<u32, E>> { go(); Box::pin(async move { go() }) }",
            "move them into the `async` block",
        ),
        ("async fn f(id: u32) -> Result<u32, E>;", "without a body"),
        (
            "#[idempotent(key = id)] async fn f(id: u32) -> Result<u32, E> { go() }",
            "applied twice",
        ),
        (
            "#[idem::idempotent] async fn f(id: u32) -> Result<u32, E> { go() }",
            "applied twice",
        ),
        ("async fn f(id: u32) { go() }", "add `-> Result<(), Error>`"),
        ("async fn f(id: u32) -> ! { loop {} }", "never returns"),
        (
            "async fn f(id: u32) -> Result<impl Id, E> { go() }",
            "name the return type",
        ),
        (
            "async fn f(id: u32) -> Result<&str, E> { go() }",
            "must be owned",
        ),
        (
            "async fn f(id: u32) -> Result<Cow<'a, str>, E> { go() }",
            "must be owned",
        ),
        (
            "fn f(id: u32) -> impl Future<Output = Result<u32, E>> { println!(); async move { go() } }",
            "move them into the `async` block",
        ),
        (
            "async fn f(id: u32) -> Result<u32, E> { let __idem_x = 1; go() }",
            "are reserved",
        ),
    ] {
        item(source, part);
    }
}

#[test]
fn all_mistakes_show_at_once() {
    let found = errors(
        "kye = id, ttl = \"24\", tenant = shop, on_error = stor, name = \"a b\"",
        "async fn f(a: &str, b: &mut u8) -> Result<&str, E> { go() }",
    );
    assert_eq!(found.len(), 8, "{found:#?}");
}

#[test]
fn patterns_below_async_trait() {
    one(
        "key = a, ttl = \"1h\", name = \"a.b\"",
        "fn f<'async_trait>(__arg1: (u32, u32)) -> Pin<Box<dyn Future<Output = Result<u32, E>> + 'async_trait>>
        { Box::pin(async move { let (a, b) = { let __arg1 = __arg1; __arg1 }; let __ret: Result<u32, E> = { Ok(a) }; __ret }) }",
        "`a` is bound by a pattern that `#[async_trait]` moves",
    );
}

#[test]
fn tx() {
    let on = |attr: &str, part: &str| {
        one(
            &format!("{OK}, {attr}"),
            "async fn f(conn: &mut Conn, id: u32, order: &Order) -> Result<u32, E> { go(conn).await }",
            part,
        );
    };
    for wrong in [
        "&mut conn",
        "self",
        "\"conn\"",
        "conn.inner",
        "point(conn)",
        "savepoint(&mut conn)",
        "savepoint()",
        "savepoint(conn, id)",
    ] {
        on(
            &format!("tx = {wrong}"),
            "write `tx = conn` or `tx = savepoint(conn)`",
        );
    }
    on("tx = pool", "`pool` is no parameter of this function");
    on("tx = id", "`tx` needs `id` as a `&mut` reference");
    on("tx = order", "`tx` needs `order` as a `&mut` reference");
    for beside in [
        "on_unknown = refuse",
        "on_cancel = abandon",
        "lease = \"30s\"",
        "max_run = \"1h\"",
        "clone = order",
    ] {
        on(
            &format!("tx = conn, {beside}"),
            "has no meaning beside `tx`",
        );
    }
    on(
        "tx = conn, on_error = release",
        "write `tx = savepoint(conn)`",
    );
    on(
        "tx = savepoint(conn), on_error = release",
        "remove `on_error`",
    );
    on(
        "tx = savepoint(conn), on_error = unknown",
        "remove `on_error`",
    );
    one(
        &format!("{OK}, tx = conn"),
        "async fn f(conn: &mut Conn, other: &mut Conn, id: u32) -> Result<u32, E> { go(conn).await }",
        "`other` would not be changed",
    );
    extra("transaction = conn", "`transaction` is called `tx` here");
}
