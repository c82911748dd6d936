//! Finds what a type visibly borrows.

use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{
    Lifetime, Macro, ParenthesizedGenericArguments, TraitBound, Type, TypeFnPtr, TypeReference,
};

/// The first reference or lifetime in `ty` that is not `'static`, outside of
/// `fn(..)`, `Fn(..)` and `for<..>`.
pub(crate) fn find_borrow(ty: &Type) -> Option<Span> {
    find(ty, |_, lifetime| {
        lifetime.is_none_or(|lifetime| lifetime.ident != "static")
    })
}

/// The first `&mut` in `ty`, outside of the same places.
pub(crate) fn find_mut(ty: &Type) -> Option<Span> {
    find(ty, |reference, _| {
        reference.is_some_and(|reference| reference.mutability.is_some())
    })
}

/// The `T` of `&T`, if nothing in `T` borrows.
pub(crate) fn referent(ty: &Type) -> Option<Type> {
    match ty {
        Type::Reference(TypeReference {
            mutability: None,
            elem,
            ..
        }) if find_borrow(elem).is_none() => Some((**elem).clone()),
        Type::Paren(paren) => referent(&paren.elem),
        Type::Group(group) => referent(&group.elem),
        _ => None,
    }
}

fn find(
    ty: &Type,
    wanted: impl Fn(Option<&TypeReference>, Option<&Lifetime>) -> bool,
) -> Option<Span> {
    let mut finder = Finder {
        wanted,
        found: None,
    };
    finder.visit_type(ty);
    finder.found
}

struct Finder<W> {
    wanted: W,
    found: Option<Span>,
}

impl<'ast, W> Visit<'ast> for Finder<W>
where
    W: Fn(Option<&TypeReference>, Option<&Lifetime>) -> bool,
{
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if (self.wanted)(Some(reference), reference.lifetime.as_ref()) {
            self.found = self.found.or(Some(reference.and_token.span));
        } else {
            visit::visit_type(self, &reference.elem);
        }
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if (self.wanted)(None, Some(lifetime)) {
            self.found = self.found.or(Some(lifetime.apostrophe));
        }
    }

    fn visit_trait_bound(&mut self, bound: &'ast TraitBound) {
        if bound.lifetimes.is_none() {
            visit::visit_trait_bound(self, bound);
        }
    }

    fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast ParenthesizedGenericArguments) {}

    fn visit_macro(&mut self, _: &'ast Macro) {}
}

#[cfg(test)]
mod tests {
    use super::{find_borrow, find_mut};

    #[test]
    fn only_visible_borrows_count() {
        for (ty, borrowed) in [
            ("u32", false),
            ("&str", true),
            ("&'static str", false),
            ("&'a str", true),
            ("Cow<'_, str>", true),
            ("Cow<'static, str>", false),
            ("Option<&Order>", true),
            ("&'static Cow<'a, str>", true),
            ("fn(&str) -> &str", false),
            ("Box<dyn Fn(&str) + Send>", false),
            ("Box<dyn Fn(&str) + 'a>", true),
            ("Box<dyn for<'a> Visit<'a>>", false),
            ("impl Fn(&Order) -> bool + Send + 'static", false),
        ] {
            let parsed = syn::parse_str(ty).expect(ty);
            assert_eq!(find_borrow(&parsed).is_some(), borrowed, "{ty}");
        }
    }

    #[test]
    fn only_visible_mutable_borrows_count() {
        for (ty, mutable) in [
            ("&str", false),
            ("&mut Conn", true),
            ("Pin<&mut Self>", true),
            ("&'static mut u8", true),
            ("fn(&mut u8)", false),
            ("*mut u8", false),
        ] {
            let parsed = syn::parse_str(ty).expect(ty);
            assert_eq!(find_mut(&parsed).is_some(), mutable, "{ty}");
        }
    }
}
