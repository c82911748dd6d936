use shop::{CardNumber, charge};

fn main() {
    drop(charge(7, CardNumber("4242".to_owned()), 4_200));
}
