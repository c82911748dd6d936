//! The scripts of this store. They hold no policy: what stands there is decided
//! on by [`transition`](crate::transition), and a script writes it if the
//! record is still the one that was seen.
//!
//! When the server is out of memory, it refuses the scripts that begin
//! something; those that end or look at something run all the same.

use std::sync::LazyLock;

/// The text of a script, and the digest by which a server knows it.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: &'static str,
    pub(super) digest: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self {
            text,
            digest: redis::Script::new(text).get_hash().to_owned(),
        }
    }
}

macro_rules! script {
    ($flags:literal, $($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($flags, "\n", $(include_str!($file)),+)))
    };
}

pub(super) static INSERT: LazyLock<Script> = script!("#!lua", "lua/time.lua", "lua/insert.lua");
/// Writes what begins an attempt.
pub(super) static TAKE: LazyLock<Script> = script!("#!lua", "lua/swap.lua");
/// Writes what ends one.
pub(super) static END: LazyLock<Script> = script!("#!lua flags=allow-oom", "lua/swap.lua");
pub(super) static COMPLETE: LazyLock<Script> =
    script!("#!lua flags=allow-oom", "lua/time.lua", "lua/complete.lua");
pub(super) static RENEW: LazyLock<Script> =
    script!("#!lua flags=allow-oom", "lua/time.lua", "lua/renew.lua");
/// Once in a store's life, and small: engines start also without memory.
pub(super) static PIN: LazyLock<Script> = script!("#!lua flags=allow-oom", "lua/pin.lua");
pub(super) static FIND: LazyLock<Script> =
    script!("#!lua flags=no-writes", "lua/time.lua", "lua/find.lua");
pub(super) static OPEN: LazyLock<Script> = script!("#!lua flags=no-writes", "lua/open.lua");
pub(super) static LOOK: LazyLock<Script> =
    script!("#!lua flags=no-writes", "lua/time.lua", "lua/look.lua");
/// What a step has done is not done again for want of memory.
pub(super) static STEP: LazyLock<Script> = script!("#!lua flags=allow-oom", "lua/step.lua");
pub(super) static STEPS: LazyLock<Script> = script!("#!lua flags=no-writes", "lua/steps.lua");
pub(super) static AUDIT: LazyLock<Script> = script!("#!lua flags=no-writes", "lua/audit.lua");
/// The front of a tiered store. A block is one byte, and must be written.
pub(super) static GET: LazyLock<Script> = script!("#!lua flags=no-writes", "lua/get.lua");
pub(super) static PUT: LazyLock<Script> = script!("#!lua", "lua/put.lua");
pub(super) static BLOCK: LazyLock<Script> = script!("#!lua flags=allow-oom", "lua/put.lua");
pub(super) static CLEAR: LazyLock<Script> = script!("#!lua flags=allow-oom", "lua/clear.lua");
