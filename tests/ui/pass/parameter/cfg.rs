#![deny(warnings)]
#![allow(unexpected_cfgs, reason = "shows that they go together")]

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "1h", name = "cfg")]
async fn with_cfg(
    id: u32,
    #[cfg(any())] gone: Missing,
    #[cfg(not(any()))] mut here: u32,
    #[cfg_attr(all(), cfg(any()))] also_gone: Missing,
    #[cfg_attr(all(), cfg(not(any())), allow(unused_mut))] mut also_here: u32,
    #[allow(unused_mut)] mut never_changed: u32,
    #[expect(unused_mut)] mut not_changed: u32,
    #[expect(unused_variables, unused_mut)] mut unused: u32,
    #[cfg_attr(any(), cfg(any()))] (left, mut right): (u32, u32),
    #[cfg(any())] _: Missing,
    #[cfg(any())] _unnamed: Missing,
) -> Result<u32, Error> {
    here += 1 + never_changed + not_changed;
    right += 1;
    #[cfg(any())]
    drop((gone, also_gone));
    Ok(id + here + also_here + left + right)
}

pub fn main() {
    drop(with_cfg(1, 2, 3, 6, 7, 8, (4, 5)));
}
