//! Proves that correct uses compile, each file with all warnings as errors, and run.

#![allow(dead_code, reason = "what only has to compile is called by nobody")]
#![allow(clippy::all, reason = "shapes are written as people may write them")]

#[cfg(test)]
#[path = "pass/body/coercion.rs"]
mod body_coercion;
#[cfg(test)]
#[path = "pass/body/ends.rs"]
mod body_ends;
#[cfg(test)]
#[path = "pass/body/inside.rs"]
mod body_inside;
#[cfg(test)]
#[path = "pass/cancel/abandon.rs"]
mod cancel_abandon;
#[cfg(test)]
#[path = "pass/cancel/clone.rs"]
mod cancel_clone;
#[cfg(test)]
#[path = "pass/cancel/not-send.rs"]
mod cancel_not_send;
#[cfg(test)]
#[path = "pass/cancel/recover.rs"]
mod cancel_recover;
#[cfg(test)]
#[path = "pass/error/policies.rs"]
mod error_policies;
#[cfg(test)]
#[path = "pass/error/result-types.rs"]
mod error_result_types;
#[cfg(test)]
#[path = "pass/keyword/crate-path.rs"]
mod keyword_crate_path;
#[cfg(test)]
#[path = "pass/keyword/everything.rs"]
mod keyword_everything;
#[cfg(test)]
#[path = "pass/keyword/expressions.rs"]
mod keyword_expressions;
#[cfg(test)]
#[path = "pass/keyword/hygiene.rs"]
mod keyword_hygiene;
#[cfg(test)]
#[path = "pass/keyword/ttl.rs"]
mod keyword_ttl;
#[cfg(test)]
#[path = "pass/parameter/cfg.rs"]
mod parameter_cfg;
#[cfg(test)]
#[path = "pass/parameter/names.rs"]
mod parameter_names;
#[cfg(test)]
#[path = "pass/parameter/patterns.rs"]
mod parameter_patterns;
#[cfg(test)]
#[path = "pass/shape/attributes.rs"]
mod shape_attributes;
#[cfg(test)]
#[path = "pass/shape/boxed-futures.rs"]
mod shape_boxed_futures;
#[cfg(test)]
#[path = "pass/shape/chain.rs"]
mod shape_chain;
#[cfg(test)]
#[path = "pass/shape/free-function.rs"]
mod shape_free_function;
#[cfg(test)]
#[path = "pass/shape/generics.rs"]
mod shape_generics;
#[cfg(test)]
#[path = "pass/shape/lifetimes.rs"]
mod shape_lifetimes;
#[cfg(test)]
#[path = "pass/shape/macro-rules.rs"]
mod shape_macro_rules;
#[cfg(test)]
#[path = "pass/shape/nested-functions.rs"]
mod shape_nested_functions;
#[cfg(test)]
#[path = "pass/shape/parameters.rs"]
mod shape_parameters;
#[cfg(test)]
#[path = "pass/shape/receivers.rs"]
mod shape_receivers;
#[cfg(test)]
#[path = "pass/shape/recursion.rs"]
mod shape_recursion;
#[cfg(test)]
#[path = "pass/shape/returned-futures.rs"]
mod shape_returned_futures;
#[cfg(test)]
#[path = "pass/shape/trait-methods.rs"]
mod shape_trait_methods;
#[cfg(test)]
#[path = "pass/transaction/shapes.rs"]
mod transaction_shapes;
#[cfg(test)]
#[path = "pass/version/versions.rs"]
mod version_versions;

#[test]
fn what_is_right_compiles_and_runs() {
    body_coercion::main();
    body_ends::main();
    body_inside::main();
    cancel_abandon::main();
    cancel_clone::main();
    cancel_not_send::main();
    cancel_recover::main();
    error_policies::main();
    error_result_types::main();
    keyword_crate_path::main();
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

#[test]
fn every_file_of_what_is_right_is_here() {
    let here = include_str!("accepted.rs");
    for folder in std::fs::read_dir("pass").expect("a folder") {
        let folder = folder.expect("an entry").path();
        for file in std::fs::read_dir(folder).expect("a folder") {
            let path = file.expect("an entry").path();
            let line = format!("#[path = \"{}\"]", path.display());
            assert!(here.contains(&line), "{line} is missing");
        }
    }
}
