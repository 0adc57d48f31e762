//! The assignment, and how it can be written wrongly.

use std::sync::atomic::{AtomicU64, Ordering};

use zkhost_guest::export::bindings::zkhost::circuit::sink::Witness;

use crate::component::Input;
use crate::params::{Act, Params};
use crate::{MODULUS, SEGMENT_AUX};

/// How often this instance assigned, for [`Act::Undetermined`].
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Groups of a segment: two full ones and one of two variables.
const GROUPS: usize = SEGMENT_AUX.div_ceil(64) as usize;
/// A variable of the last group that does not exist.
const PADDING_BIT: u64 = 1 << (SEGMENT_AUX % 64);

pub(crate) fn assign(params: &Params, input: Input, partition: u32, segment: u32, out: &Witness) {
    if params.act == Act::Nothing {
        return;
    }
    write_public(params, input, segment, out);

    // The bits of the honest assignment are arbitrary; these differ between partitions.
    let pattern = 0x0123_4567_89ab_cdef_u64.rotate_left(partition);
    let mut masks = [0, pattern, 0, !pattern, 0, 0b10];
    let mut elements = Vec::new();
    if segment == 0 {
        masks[0] = 0b11;
        masks[1] &= !0b11;
        let left = if params.act == Act::Unsatisfied { input.left ^ 1 } else { input.left };
        elements.extend_from_slice(&[u64::from(left), 0, 0, 0]);
        elements.extend_from_slice(&[u64::from(input.right), 0, 0, 0]);
    }
    let mut masks = masks[..2 * GROUPS].to_vec();
    match params.act {
        Act::MoreGroups => masks.extend_from_slice(&[0, 0]),
        Act::FewerGroups => masks.truncate(2 * GROUPS - 2),
        Act::MasksOverlap => masks[1] |= masks[0],
        Act::PaddingOne => masks[5] |= PADDING_BIT,
        Act::PaddingFull => {
            masks[4] |= PADDING_BIT;
            elements.extend_from_slice(&[5, 0, 0, 0]);
        }
        Act::OddMasks => masks.push(0),
        Act::FewerLimbs => {
            elements.pop();
        }
        Act::MoreLimbs => elements.push(0),
        Act::Unreduced => elements[..4].copy_from_slice(&MODULUS),
        Act::Undetermined => masks[3] ^= CALLS.fetch_add(1, Ordering::Relaxed),
        Act::HugeCall => masks.resize(1 << 20, 0),
        _ => {}
    }
    if params.act == Act::GroupFlood {
        loop {
            out.write_groups(&[0, 0], &[]);
        }
    }
    out.write_groups(&masks, &elements);
}

fn write_public(params: &Params, input: Input, segment: u32, out: &Witness) {
    let product = u64::from(input.left) * u64::from(input.right);
    let limbs = [product, 0, 0, 0];
    let is_first = segment == 0;
    match params.act {
        Act::PublicMissing => {}
        Act::PublicFromLaterSegment if is_first => {}
        Act::PublicFromLaterSegment => out.write_public(&limbs),
        _ if !is_first => {}
        Act::PublicTwice => {
            out.write_public(&limbs);
            out.write_public(&limbs);
        }
        Act::PublicUnreduced => out.write_public(&MODULUS),
        Act::PublicPartial => out.write_public(&limbs[..3]),
        _ => out.write_public(&limbs),
    }
}
