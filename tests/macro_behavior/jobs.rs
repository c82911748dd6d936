//! Job functions as queue workers call them: a job by value, and context that
//! the worker injects.

use std::sync::Arc;

use idem::{Error, idempotent};
use serde::{Deserialize, Serialize};

use crate::{Runs, engine};

/// What a worker hands to a job function beside the job.
#[derive(Debug, Clone)]
struct Data<T>(T);

impl<T> std::ops::Deref for Data<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TaskId(String);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Email {
    to: String,
    subject: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum JobError {
    Engine(Error),
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

#[idempotent(
    key = task.0,
    payload = (job.to, job.subject),
    ttl = "7d",
    name = "email.send",
    label = task.0,
)]
async fn send_email(job: Email, task: TaskId, runs: Data<Arc<Runs>>) -> Result<String, JobError> {
    runs.add();
    Ok(format!("{} to {}", job.subject, job.to))
}

/// A worker: any function of a job and its context, called through a trait.
trait JobFn<Args> {
    type Output;
    fn call(&self, args: Args) -> impl Future<Output = Self::Output> + Send;
}

impl<F, A, B, C, Fut> JobFn<(A, B, C)> for F
where
    F: Fn(A, B, C) -> Fut + Sync,
    A: Send,
    B: Send,
    C: Send,
    Fut: Future + Send,
{
    type Output = Fut::Output;

    fn call(&self, (a, b, c): (A, B, C)) -> impl Future<Output = Fut::Output> + Send {
        self(a, b, c)
    }
}

async fn deliver<J, Args>(job: J, args: Args) -> J::Output
where
    J: JobFn<Args>,
{
    job.call(args).await
}

#[tokio::test]
async fn a_redelivered_job_gets_its_first_answer() {
    let (engine, runs) = (engine().await, Arc::new(Runs::default()));
    let email = Email {
        to: "ada".to_owned(),
        subject: "hello".to_owned(),
    };
    let delivery = || {
        let task = TaskId("task 1".to_owned());
        let args = (email.clone(), task, Data(Arc::clone(&runs)));
        engine.scope(deliver(send_email, args))
    };
    assert_eq!(delivery().await.as_deref(), Ok("hello to ada"));
    assert_eq!(delivery().await.as_deref(), Ok("hello to ada"));
    assert_eq!(runs.count(), 1);

    let other = Email {
        to: "bob".to_owned(),
        ..email.clone()
    };
    let args = (other, TaskId("task 1".to_owned()), Data(Arc::clone(&runs)));
    assert!(matches!(
        engine.scope(deliver(send_email, args)).await,
        Err(JobError::Engine(Error::PayloadMismatch { .. }))
    ));
}
