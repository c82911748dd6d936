//! The cases that `docs/guarantees.md` names are cases here.

#[path = "../guarantees/links.rs"]
mod links;

use libtest_mimic::{Failed, Trial};

/// The names of cases are known only when all are.
pub(crate) fn case(cases: &[Trial]) -> Trial {
    let names: Vec<String> = cases.iter().map(|case| case.name().to_owned()).collect();
    Trial::test("page::every_case_that_it_names_is_there", move || {
        check(&names)
    })
}

/// A name is one of a case, or how it begins; `*` is any store.
fn is_there(wanted: &str, names: &[String]) -> bool {
    let Some((before, after)) = wanted.split_once('*') else {
        let begins = format!("{wanted}::");
        return names.iter().any(|n| n == wanted || n.starts_with(&begins));
    };
    names
        .iter()
        .any(|name| name.starts_with(before) && name.ends_with(after))
}

fn check(names: &[String]) -> Result<(), Failed> {
    let mut looked_for = 0;
    for link in links::of_the_page() {
        // Those on servers are cases only with servers.
        let is_here = cfg!(feature = "servers") || !link.text.contains("::servers::");
        if link.is_a_crash() && is_here {
            looked_for += 1;
            if !is_there(&link.text, names) {
                return Err(format!("{link:?} is no case").into());
            }
        }
    }
    if looked_for < 25 {
        return Err(format!("only {looked_for} cases were looked for").into());
    }
    Ok(())
}
