use shop::{CardNumber, OrderId, charge};

// What a runtime's `spawn` asks for.
fn spawn<F: Future<Output: Send> + Send + 'static>(_: F) {}

fn main() {
    spawn(charge(OrderId(7), CardNumber("4242".to_owned()), 4_200));
}
