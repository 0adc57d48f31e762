//! Labels a small graph and writes an input of the `replica` circuit: true, and different for every seed.
//!
//! ```text
//! cargo run --release --example labelling -- '{"partitions": 40, "depth": 3}' > input.json
//! ```

mod graph;

use graph::Labelling;
use replica::Params;

fn main() -> Result<(), String> {
    let params = std::env::args().nth(1).ok_or("give the circuit's parameters as JSON, such as '{\"depth\": 2}'")?;
    let params: Params = serde_json::from_str(&params).map_err(|error| format!("the parameters: {error}"))?;
    println!("{}", Labelling::new(&params, 1).input());
    Ok(())
}
