//! The grammar of `key = ..` and `payload = ..`: an expression, or a tuple
//! whose elements are taken one by one.

use syn::Expr;

/// What identifies a call, or what must be equal when a key repeats.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    /// A literal tuple: each element is borrowed and encoded for itself.
    Parts(Vec<Expr>),
    /// Any other expression.
    Whole(Expr),
}

impl Selection {
    /// Takes a literal tuple apart, also one in parentheses.
    pub(crate) fn new(expr: Expr) -> Self {
        match expr {
            Expr::Tuple(tuple) if tuple.attrs.is_empty() => {
                Self::Parts(tuple.elems.into_iter().collect())
            }
            Expr::Paren(paren) => Self::new(*paren.expr),
            Expr::Group(group) => Self::new(*group.expr),
            other => Self::Whole(other),
        }
    }

    /// The expressions, in order.
    pub(crate) fn exprs(&self) -> &[Expr] {
        match self {
            Self::Parts(parts) => parts,
            Self::Whole(expr) => std::slice::from_ref(expr),
        }
    }
}
