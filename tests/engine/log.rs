//! What this process logs.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use idem::Error;

use crate::{DAY, memory};

/// Everything that this process logs, on every thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Starts to keep the log, with the first test that asks for it.
    pub(crate) async fn start() -> &'static Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_writer(move || writer.clone())
                .init();
            log
        });
        // Another test that logged in that moment may have noted, for all, that
        // nobody listens: notes are made anew until a call is heard.
        let engine = memory().await;
        loop {
            tracing::callsite::rebuild_interest_cache();
            let call = engine.call("log.heard", &1, DAY);
            call.run(async { Ok::<_, Error>(()) }).await.unwrap();
            if log.text().contains("log.heard") {
                return log;
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}
