#![deny(warnings)]

use std::borrow::Cow;

use idem::{Error, idempotent};

struct Shop<'s>(&'s str);

impl<'s> Shop<'s> {
    #[idempotent(key = (id, text), ttl = "1h", name = "shop.named", on_cancel = abandon)]
    async fn named<'a>(&'a self, id: &'a str, text: Cow<'_, str>) -> Result<String, Error> {
        Ok(format!("{}{id}{text}", self.0))
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.captures", on_cancel = abandon)]
    fn captures<'a>(&'a self, id: u32) -> impl Future<Output = Result<usize, Error>> + use<'a, 's> {
        async move { Ok(self.0.len() + id as usize) }
    }
}

#[idempotent(key = text, ttl = "1h")]
async fn constant(text: &'static str, also: Cow<'static, str>) -> Result<usize, Error> {
    Ok(text.len() + also.len())
}

#[idempotent(key = id, ttl = "1h")]
async fn callbacks(
    id: u32,
    plain: fn(&str) -> &str,
    boxed: Box<dyn for<'a> Fn(&'a str) -> &'a str + Send + Sync>,
) -> Result<usize, Error> {
    Ok(plain("a").len() + boxed("b").len() + id as usize)
}

pub fn main() {
    drop(Shop("a").named("b", "c".into()));
    drop(Shop("a").captures(1));
    drop(constant("a", "b".into()));
    drop(callbacks(1, |text| text, Box::new(|text| text)));
}
