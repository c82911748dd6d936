//! Keys that spread like digests, without the cost of one.

/// The key number `n` of a series. Two of them are equal only if both numbers are.
#[must_use]
pub fn key(series: u64, n: u64) -> [u8; 32] {
    let mut key = [0; 32];
    let mut seed = series;
    for part in key.chunks_exact_mut(8) {
        seed = mix(seed.wrapping_add(n));
        part.copy_from_slice(&seed.to_be_bytes());
    }
    key
}

/// A key as a text of 32 characters.
#[must_use]
pub fn text(series: u64, n: u64) -> String {
    let mut text = String::with_capacity(32);
    for byte in &key(series, n)[..16] {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// A permutation of the numbers of 64 bits that looks like chance.
#[must_use]
pub fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
