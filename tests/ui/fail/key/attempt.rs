use idem::{Error, idempotent};

struct Job {
    id: u32,
    attempt: u32,
}

#[idempotent(key = (job.id, job.attempt), ttl = "24h")]
async fn charge(job: Job) -> Result<u32, Error> {
    Ok(job.id + job.attempt)
}

fn main() {}
