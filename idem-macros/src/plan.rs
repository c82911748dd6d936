//! The decided model: what will be generated. Nothing optional here means
//! "not looked at yet".

use proc_macro2::TokenStream;
use syn::{Attribute, Expr, Ident, LitStr, Path, Token, Type};

use crate::args::choice::{OnError, OnInProgress, OnMissingKey, OnStale};
use crate::args::key::Selection;
use crate::args::ttl::TtlArg;
use crate::args::tx::Tx;
use crate::input::FnInput;

#[derive(Debug)]
pub(crate) struct Plan {
    /// The function; its signature has lost the `mut` of its parameters, and
    /// its `_` parameters have names.
    pub(crate) function: FnInput,
    pub(crate) shape: Shape,
    /// The return type, or the output of the future that is returned.
    pub(crate) answer: Type,
    /// Path of the runtime crate.
    pub(crate) runtime: TokenStream,
    pub(crate) site: Site,
    pub(crate) call: Call,
    pub(crate) on_error: OnError,
    pub(crate) map_err: Option<Path>,
    pub(crate) codec: Option<Path>,
    pub(crate) driver: Driver,
    /// The caller's connection, if that is where the record lives.
    pub(crate) within: Option<Tx>,
    pub(crate) params: Vec<Param>,
    /// Asks the outside world before the body runs again.
    pub(crate) recover: Option<Expr>,
}

/// What is known while compiling.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: Option<LitStr>,
    pub(crate) function: String,
    pub(crate) on_in_progress: OnInProgress,
    pub(crate) on_unknown: OnUnknownKind,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) lease_us: Option<u64>,
    pub(crate) max_run_us: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnUnknownKind {
    Refuse,
    Rerun,
    Recover,
}

/// What is computed at each call, from borrows, before anything else happens.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) engine: Option<Expr>,
    pub(crate) ttl: TtlArg,
    pub(crate) scope: Option<Expr>,
    pub(crate) key: Selection,
    pub(crate) payload: Option<Selection>,
    pub(crate) version: Option<Expr>,
    /// Only beside a version.
    pub(crate) on_stale: Option<OnStale>,
    pub(crate) label: Option<Expr>,
}

/// Who polls the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// A task of its own, which outlives the caller.
    Detached,
    /// The caller.
    InPlace,
    /// The caller, on the connection that the record is written on, too.
    Within,
}

/// How the function is asynchronous.
#[derive(Debug)]
pub(crate) enum Shape {
    AsyncFn,
    /// The whole body is one `async` block, in `Box::pin(..)` or bare.
    AsyncBlock(AsyncBlock),
}

#[derive(Debug)]
pub(crate) struct AsyncBlock {
    pub(crate) around: Around,
    /// The statements of the block, with their braces.
    pub(crate) block: proc_macro2::Group,
}

/// What makes the block's future into the one that is returned.
#[derive(Debug)]
pub(crate) enum Around {
    Nothing,
    /// `Box::pin` and the like, in front of parentheses.
    Call(TokenStream),
    /// `.boxed()` and the like, behind the block.
    Method(TokenStream),
}

/// What happens to one parameter, or to the receiver.
#[derive(Debug, Default)]
pub(crate) struct Param {
    /// `#[cfg]`s, which every generated use must carry too.
    pub(crate) cfgs: Vec<Attribute>,
    /// Bindings that the body's task takes as a whole.
    pub(crate) captures: Vec<Ident>,
    /// Levels of lints, for the bindings made again.
    pub(crate) lints: Vec<Attribute>,
    /// Bindings that the user wrote with `mut`.
    pub(crate) rebinds: Vec<(Token![mut], Ident)>,
    /// The type of the parameter that `tx` names.
    pub(crate) connection: Option<Type>,
    /// A check that the type can move into a task.
    pub(crate) check: Option<MoveCheck>,
    /// A borrow of which the task gets a clone.
    pub(crate) cloned: Option<Cloned>,
}

#[derive(Debug)]
pub(crate) struct MoveCheck {
    pub(crate) ty: Type,
    /// The type names a type parameter: rustc's own advice is better there.
    pub(crate) generic: bool,
}

#[derive(Debug)]
pub(crate) struct Cloned {
    /// The parameter, or the receiver's own `self` token.
    pub(crate) name: Ident,
    /// The name under which the task owns the clone.
    pub(crate) owned: Ident,
    /// The `T` of `&T`.
    pub(crate) ty: Type,
    /// The type names a type parameter.
    pub(crate) generic: bool,
    pub(crate) mutability: Option<Token![mut]>,
}

impl Cloned {
    pub(crate) fn is_self(&self) -> bool {
        self.name == "self"
    }
}

impl Plan {
    /// Says whether `self` is renamed in the body.
    pub(crate) fn clones_self(&self) -> bool {
        self.params
            .iter()
            .filter_map(|param| param.cloned.as_ref())
            .any(Cloned::is_self)
    }
}
