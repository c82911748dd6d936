//! `idem serve`: the page for operators, by itself.

use idem::Engine;
use idem_cli::ops::{self, Access};
use tokio::net::TcpListener;

use crate::args::{Global, Serve};
use crate::connect;
use crate::failure::Failure;
use crate::output::say;

pub(crate) async fn run(global: &Global, args: &Serve) -> Result<(), Failure> {
    let access = access(args)?;
    let operator = connect::operator(global).await?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Failure::failed(format!(
            "nothing can listen on {}: {}; --listen takes another address",
            args.listen,
            error.kind()
        ))
    })?;
    let address = listener
        .local_addr()
        .map_err(|_| Failure::failed("the listener has no address"))?;
    say(&format!("the page is at http://{address}/ until Ctrl-C"));
    serve(listener, &operator.engine, access).await
}

async fn serve(listener: TcpListener, engine: &Engine, access: Access) -> Result<(), Failure> {
    let stopped = async {
        // Without a way to be told, it is stopped as any process is.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    ops::serve(listener, ops::router(engine, access), stopped)
        .await
        .map_err(|_| Failure::failed("the listener failed"))
}

/// Who may enter: whoever has the token, or if that is said whoever is on this host.
fn access(args: &Serve) -> Result<Access, Failure> {
    let Some(path) = &args.token_file else {
        return match (args.no_auth, args.listen.ip().is_loopback()) {
            (true, true) => Ok(Access::loopback()?),
            (true, false) => Err(Failure::refused(
                "whoever reaches this address could settle records: pass --token-file, or listen on 127.0.0.1",
            )),
            (false, _) => Err(Failure::usage(
                "the page needs a token: pass --token-file, or --no-auth to let in everybody on this host",
            )),
        };
    };
    let token = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("the token file cannot be read: {}", error.kind()))
    })?;
    Access::token(token.trim()).map_err(|weak| Failure::usage(weak.to_string()))
}
