//! A recorded circuit as the prover takes it, and the peer.

#[cfg(not(feature = "supraseal"))]
mod no_peer;
#[cfg(feature = "supraseal")]
mod supraseal;

#[cfg(not(feature = "supraseal"))]
pub use no_peer::NoPeer as Peer;
#[cfg(feature = "supraseal")]
pub use supraseal::Supraseal as Peer;

use std::collections::HashMap;

use zkhost_groth16::{
    R1cs,
    r1cs::{Counts, MatrixId, ShapeLimits, ShapeRecorder},
};
use zkhost_guest::native::Shape;

/// Records a native run's shape the way a guest's calls would, without names.
pub fn constraint_system(shape: &Shape) -> R1cs {
    let mut recorder = ShapeRecorder::new(ShapeLimits::NONE, false);
    let mut ids: HashMap<[u64; 4], u32> = HashMap::new();
    for (matrix, rows) in MatrixId::ALL.into_iter().zip(&shape.rows) {
        for row in rows {
            let columns: Vec<u32> = row.iter().map(|(column, _)| *column).collect();
            let coefficients: Vec<u32> = row
                .iter()
                .map(|(_, coefficient)| {
                    let limbs = coefficient.to_canonical();
                    *ids.entry(limbs).or_insert_with(|| recorder.add_coefficients(&limbs).expect("within the limits"))
                })
                .collect();
            recorder.add_rows(matrix, &[row.len() as u32], &columns, &coefficients).expect("within the limits");
        }
    }
    let zkhost_guest::Counts { publics, aux, constraints } = shape.counts;
    let counts = Counts { publics, aux, constraints };
    recorder.finish(counts).expect("rows of a complete recording")
}
