//! Prints the results in `benches/results` as a table.
//!
//! usage: `cargo run -p zkhost-benches --bin table [-- SINCE]`, SINCE a date as results have it; earlier ones are left out.

use serde::Deserialize;
use std::path::Path;

/// One line of a result file, as far as the table shows it.
#[derive(Deserialize)]
struct Row {
    bench: String,
    case: String,
    ours: f64,
    peer: Option<String>,
    peer_value: Option<f64>,
    unit: String,
    checked: bool,
    date: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let since = std::env::args().nth(1).unwrap_or_default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.sort();
    println!(
        "{:<16} {:<28} {:>12} {:>12} {:>7} {:<6} {:<8} peer",
        "bench", "case", "ours", "peer's", "ratio", "unit", "checked"
    );
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "jsonl")) {
        for line in std::fs::read_to_string(file)?.lines() {
            let row: Row = serde_json::from_str(line).map_err(|error| format!("{}: {error}", file.display()))?;
            if row.date >= since {
                print_row(&row);
            }
        }
    }
    Ok(())
}

fn print_row(row: &Row) {
    let value = row.peer_value.map_or(String::new(), |value| format!("{value:.3}"));
    let ratio = row.peer_value.map_or(String::new(), |value| format!("{:.2}", row.ours / value));
    let checked = if row.checked { "yes" } else { "no" };
    let peer = row.peer.as_deref().unwrap_or_default();
    println!(
        "{:<16} {:<28} {:>12.3} {value:>12} {ratio:>7} {:<6} {checked:<8} {peer}",
        row.bench, row.case, row.ours, row.unit
    );
}
