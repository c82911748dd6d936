//! Every other file here, so that one build is enough. `keyword/crate-path.rs` names the root of its
//! crate, and is one by itself.

#![deny(warnings)]

#[path = "body/coercion.rs"]
mod body_coercion;
#[path = "body/ends.rs"]
mod body_ends;
#[path = "body/inside.rs"]
mod body_inside;
#[path = "cancel/abandon.rs"]
mod cancel_abandon;
#[path = "cancel/clone.rs"]
mod cancel_clone;
#[path = "cancel/not-send.rs"]
mod cancel_not_send;
#[path = "cancel/recover.rs"]
mod cancel_recover;
#[path = "error/policies.rs"]
mod error_policies;
#[path = "error/result-types.rs"]
mod error_result_types;
#[path = "keyword/everything.rs"]
mod keyword_everything;
#[path = "keyword/expressions.rs"]
mod keyword_expressions;
#[path = "keyword/hygiene.rs"]
mod keyword_hygiene;
#[path = "keyword/ttl.rs"]
mod keyword_ttl;
#[path = "parameter/cfg.rs"]
mod parameter_cfg;
#[path = "parameter/names.rs"]
mod parameter_names;
#[path = "parameter/patterns.rs"]
mod parameter_patterns;
#[path = "shape/attributes.rs"]
mod shape_attributes;
#[path = "shape/boxed-futures.rs"]
mod shape_boxed_futures;
#[path = "shape/chain.rs"]
mod shape_chain;
#[path = "shape/free-function.rs"]
mod shape_free_function;
#[path = "shape/generics.rs"]
mod shape_generics;
#[path = "shape/lifetimes.rs"]
mod shape_lifetimes;
#[path = "shape/macro-rules.rs"]
mod shape_macro_rules;
#[path = "shape/nested-functions.rs"]
mod shape_nested_functions;
#[path = "shape/parameters.rs"]
mod shape_parameters;
#[path = "shape/receivers.rs"]
mod shape_receivers;
#[path = "shape/recursion.rs"]
mod shape_recursion;
#[path = "shape/returned-futures.rs"]
mod shape_returned_futures;
#[path = "shape/trait-methods.rs"]
mod shape_trait_methods;
#[path = "transaction/shapes.rs"]
mod transaction_shapes;
#[path = "version/versions.rs"]
mod version_versions;

fn main() {
    body_coercion::main();
    body_ends::main();
    body_inside::main();
    cancel_abandon::main();
    cancel_clone::main();
    cancel_not_send::main();
    cancel_recover::main();
    error_policies::main();
    error_result_types::main();
    keyword_everything::main();
    keyword_expressions::main();
    keyword_hygiene::main();
    keyword_ttl::main();
    parameter_cfg::main();
    parameter_names::main();
    parameter_patterns::main();
    shape_attributes::main();
    shape_boxed_futures::main();
    shape_chain::main();
    shape_free_function::main();
    shape_generics::main();
    shape_lifetimes::main();
    shape_macro_rules::main();
    shape_nested_functions::main();
    shape_parameters::main();
    shape_receivers::main();
    shape_recursion::main();
    shape_returned_futures::main();
    shape_trait_methods::main();
    transaction_shapes::main();
    version_versions::main();
}
