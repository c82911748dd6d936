use shop::CardNumber;

#[idem::idempotent(name = "cards.check", key = card, ttl = "1h")]
async fn check(card: CardNumber) -> Result<bool, idem::Error> {
    drop(card);
    Ok(true)
}

fn main() {}
