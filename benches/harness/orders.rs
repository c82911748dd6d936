//! Arguments of a call, small and large.

use serde::Serialize;

/// Five fields.
#[derive(Debug, Clone, Serialize)]
pub struct Order {
    pub id: u64,
    pub customer: String,
    pub currency: String,
    pub amount: u64,
    pub express: bool,
}

/// About 10 KB as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Basket {
    pub order: Order,
    pub items: Vec<Item>,
}

/// A line of a basket.
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    pub sku: String,
    pub title: String,
    pub quantity: u32,
    pub price: u64,
    pub weight: f64,
}

/// The small one.
#[must_use]
pub fn order() -> Order {
    Order {
        id: 4_711,
        customer: "customer-00042".to_owned(),
        currency: "EUR".to_owned(),
        amount: 4_200,
        express: true,
    }
}

/// The large one.
#[must_use]
pub fn basket() -> Basket {
    let item = |n: u32| Item {
        sku: format!("sku-{n:06}"),
        title: format!("an article of a catalogue, the {n}th of its kind"),
        quantity: n % 7 + 1,
        price: u64::from(n) * 199,
        weight: f64::from(n) * 0.125,
    };
    Basket {
        order: order(),
        items: (0..82).map(item).collect(),
    }
}
