//! Transforms over Fr on the device: see `kernels/ntt.cu` for how.
//!
//! Vectors are Montgomery limbs. X_f = sum_i x_i w^(i f), and the inverse the same with 1/w; 1/n is one of the scalings, so
//! that it can be part of another one.

use cudarc::driver::{DeviceRepr, LaunchConfig, PushKernelArg};
use ff::Field;
use zkhost_groth16::{
    Scalar,
    scalar::{Limbs, to_montgomery},
};

use crate::{
    device::{Kernel, Stream, grid},
    error::{CudaError, Doing},
    memory::{Buffer, Slice},
};

/// log2 of the largest domain.
pub const LOG_DOMAIN_MAX: u32 = 28;

/// Index bits that a pass over consecutive elements transforms, at most; also log2 of the elements of a block's tile.
const LOG_TILE: u32 = 10;

/// Index bits that a pass over distant elements transforms, at most: four columns of 32 bytes stay together.
const LOG_STRIDED_MAX: u32 = 8;

/// Threads of the simple kernels.
const THREADS: u32 = 256;

/// Direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Coefficients to values.
    Forward,
    /// Values to coefficients, times n.
    Inverse,
}

/// Order of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Position i holds index i.
    Natural,
    /// Position i holds the index whose bits are those of i reversed.
    BitReversed,
}

/// A transform to do, in place. Natural to bit-reversed order and back are the cheap ones; keeping the order costs one
/// more crossing of memory.
#[derive(Clone, Copy)]
pub struct Transform<'a> {
    /// Forward or inverse.
    pub direction: Direction,
    /// Order of what is read.
    pub input: Order,
    /// Order of what is written.
    pub output: Order,
    /// Factors for what is read, by index.
    pub before: Option<&'a FactorTable>,
    /// Factors for what is written, by index.
    pub after: Option<&'a FactorTable>,
}

/// How indices of a [`FactorTable`] relate to positions.
#[repr(C)]
#[derive(Clone, Copy)]
struct Factors {
    low: u64,
    high: u64,
    log_low: u32,
    reversed: u32,
}

// SAFETY: the layout of ntt_factors_t in kernels/ntt.cu, of plain numbers.
unsafe impl DeviceRepr for Factors {}

/// One pass of a transform.
#[repr(C)]
#[derive(Clone, Copy)]
struct Pass {
    log_n: u32,
    low: u32,
    k: u32,
    log_columns: u32,
    log_roots: u32,
    inverse: u32,
}

// SAFETY: the layout of ntt_pass_t in kernels/ntt.cu, of plain numbers.
unsafe impl DeviceRepr for Pass {}

/// An element as a kernel's argument.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(crate) struct Element(pub(crate) Limbs);

// SAFETY: the layout of fr_t in kernels/fr.cuh.
unsafe impl DeviceRepr for Element {}

impl From<&Scalar> for Element {
    fn from(scalar: &Scalar) -> Self {
        Self(to_montgomery(scalar))
    }
}

impl Factors {
    const NONE: Self = Self { low: 0, high: 0, log_low: 0, reversed: 0 };
}

/// Factors first * base^i for the indices i of a domain.
pub struct FactorTable {
    low: Buffer<Limbs>,
    high: Option<Buffer<Limbs>>,
    log_low: u32,
    // Stored by bit-reversed index already.
    stored_reversed: bool,
}

impl FactorTable {
    /// The same factor everywhere.
    pub fn constant(stream: &Stream, factor: &Scalar) -> Result<Self, CudaError> {
        let low = stream.device().allocate(1)?;
        stream.upload(low.as_slice(), &[to_montgomery(factor)])?;
        Ok(Self { low, high: None, log_low: 0, stored_reversed: false })
    }

    /// first * base^i in two tables of about 2^(log_n / 2), for any coset; a use costs two products.
    pub fn powers(stream: &Stream, log_n: u32, first: &Scalar, base: &Scalar) -> Result<Self, CudaError> {
        let log_low = log_n.div_ceil(2);
        let low = powers(stream, 1 << log_low, first, base, 0)?;
        let step = base.pow_vartime([1u64 << log_low]);
        let high = powers(stream, 1 << (log_n - log_low), &Scalar::ONE, &step, 0)?;
        Ok(Self { low, high: Some(high), log_low, stored_reversed: false })
    }

    /// first * base^i in one table, stored in bit-reversed order for use on vectors in that order; a use costs one
    /// product, the table 32 bytes for each point of the domain.
    pub fn powers_reversed(stream: &Stream, log_n: u32, first: &Scalar, base: &Scalar) -> Result<Self, CudaError> {
        let low = powers(stream, 1 << log_n, first, base, log_n)?;
        Ok(Self { low, high: None, log_low: log_n, stored_reversed: true })
    }

    fn for_order(&self, order: Order) -> Factors {
        Factors {
            low: self.low.as_slice().address(),
            high: self.high.as_ref().map_or(0, |high| high.as_slice().address()),
            log_low: self.log_low,
            reversed: u32::from((order == Order::BitReversed) != self.stored_reversed),
        }
    }
}

/// first * base^i for i < len, on the device; with `reversed_bits`, at the positions of so many bits reversed.
pub(crate) fn powers(
    stream: &Stream,
    len: usize,
    first: &Scalar,
    base: &Scalar,
    reversed_bits: u32,
) -> Result<Buffer<Limbs>, CudaError> {
    let out = stream.device().allocate::<Limbs>(len)?;
    let kernel = stream.device().kernel("ntt_powers")?;
    let (first, base) = (Element::from(first), Element::from(base));
    let blocks = len.div_ceil(THREADS as usize).min(16 * stream.device().multiprocessors() as usize);
    let slice = out.as_slice();
    let count = len as u64;
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&slice).arg(&count).arg(&first).arg(&base).arg(&reversed_bits);
    // SAFETY: the kernel writes `len` elements of `out`; the arguments are those of its definition.
    unsafe { launch.launch(grid(blocks, THREADS, 0)) }.doing("building a table of powers")?;
    Ok(out)
}

/// The tables and kernels for domains of 2^log_n points under one root of unity.
pub struct Domain {
    log_n: u32,
    inner: Buffer<Limbs>,
    roots: Buffer<Limbs>,
    passes: Vec<(u32, u32)>,
    kernels: Kernels,
}

struct Kernels {
    dif: Kernel,
    dit: Kernel,
    fused: Kernel,
    tiny: Kernel,
    reverse: Kernel,
    multiply: Kernel,
}

impl Domain {
    /// Tables for the domain of 2^log_n points generated by root^(2^(32 - log_n)), `root` being a primitive 2^32-th root of
    /// unity: which one is for the key to say. Half a domain of roots stays in device memory.
    pub fn new(stream: &Stream, root: &Scalar, log_n: u32) -> Result<Self, CudaError> {
        if log_n > LOG_DOMAIN_MAX {
            return Err(CudaError::Unsupported(format!(
                "a domain of 2^{log_n} points was asked for; the device transforms up to 2^{LOG_DOMAIN_MAX}"
            )));
        }
        let root_of = |log: u32| root.pow_vartime([1u64 << (32 - log)]);
        let inner = powers(stream, 1 << LOG_TILE, &Scalar::ONE, &root_of(LOG_TILE), 0)?;
        let roots = powers(stream, 1 << log_n.max(1) >> 1, &Scalar::ONE, &root_of(log_n.max(1)), 0)?;
        let device = stream.device();
        let kernels = Kernels {
            dif: device.kernel("ntt_dif")?,
            dit: device.kernel("ntt_dit")?,
            fused: device.kernel("ntt_inverse_scale_forward")?,
            tiny: device.kernel("ntt_tiny")?,
            reverse: device.kernel("ntt_reverse")?,
            multiply: device.kernel("ntt_multiply")?,
        };
        Ok(Self { log_n, inner, roots, passes: plan(log_n), kernels })
    }

    /// log2 of the number of points.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        1 << self.log_n
    }

    /// A domain has at least one point.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Transforms each of the vectors that `data` holds one after another, in place.
    pub fn transform(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        transform: &Transform<'_>,
    ) -> Result<(), CudaError> {
        let batch = self.batch(data)?;
        if batch == 0 {
            return Ok(());
        }
        let factors = |table: Option<&FactorTable>, order| table.map_or(Factors::NONE, |table| table.for_order(order));
        let before = factors(transform.before, transform.input);
        let after = factors(transform.after, transform.output);
        let inverse = transform.direction == Direction::Inverse;
        if self.passes.is_empty() {
            return self.tiny(stream, data, batch, before, after);
        }
        match (transform.input, transform.output) {
            (Order::Natural, Order::BitReversed) => self.dif(stream, data, batch, inverse, before, after),
            (Order::BitReversed, Order::Natural) => self.dit(stream, data, batch, inverse, before, after),
            (Order::Natural, Order::Natural) => {
                self.reverse(stream, data, batch)?;
                let before = factors(transform.before, Order::BitReversed);
                self.dit(stream, data, batch, inverse, before, after)
            }
            (Order::BitReversed, Order::BitReversed) => {
                self.reverse(stream, data, batch)?;
                let before = factors(transform.before, Order::Natural);
                self.dif(stream, data, batch, inverse, before, after)
            }
        }
    }

    /// The quotient's scalars: takes the values a and b of two polynomials on the domain (one after another in `data`), and
    /// leaves, canonical, the products of their values on the coset in the place of a; b is used up.
    ///
    /// `shift` is 1/n times the powers of the coset's generator, made by [`FactorTable::powers_reversed`]. Four transforms,
    /// of which the middle passes are one kernel, and so are the last pass and the product.
    pub fn coset_product(&self, stream: &Stream, data: Slice<'_, Limbs>, shift: &FactorTable) -> Result<(), CudaError> {
        let n = self.len();
        let both = data.slice(0, 2 * n)?;
        let (a, b) = (data.slice(0, n)?, data.slice(n, n)?);
        // A product with the plain integer 1 takes Montgomery form to canonical form.
        let to_canonical = Element([1, 0, 0, 0]);
        let middle = shift.for_order(Order::BitReversed);
        let Some((&(_, last), lower)) = self.passes.split_last() else {
            // Of two points each order is the other.
            self.tiny(stream, both, 2, Factors::NONE, shift.for_order(Order::Natural))?;
            self.tiny(stream, both, 2, Factors::NONE, Factors::NONE)?;
            return self.multiply(stream, a, b, to_canonical);
        };
        for &(low, k) in self.passes.iter().skip(1).rev() {
            self.launch_dif(stream, both, 2, self.pass(low, k, true), Factors::NONE, Factors::NONE)?;
        }
        self.launch_fused(stream, both, 2, middle)?;
        if lower.is_empty() {
            return self.multiply(stream, a, b, to_canonical);
        }
        for &(low, k) in &lower[1..] {
            self.launch_dit(stream, both, 2, self.pass(low, k, false), Factors::NONE, Factors::NONE, None)?;
        }
        let pass = self.pass(self.log_n - last, last, false);
        self.launch_dit(stream, b, 1, pass, Factors::NONE, Factors::NONE, None)?;
        self.launch_dit(stream, a, 1, pass, Factors::NONE, Factors::NONE, Some((b, to_canonical)))
    }

    fn batch(&self, data: Slice<'_, Limbs>) -> Result<u32, CudaError> {
        if data.len() % self.len() != 0 {
            let (len, n) = (data.len(), self.len());
            return Err(CudaError::Unsupported(format!("{len} elements are not a whole number of vectors of {n}")));
        }
        Ok((data.len() / self.len()) as u32)
    }

    fn pass(&self, low: u32, k: u32, inverse: bool) -> Pass {
        let room = if low == 0 { self.log_n - k } else { low };
        let log_columns = (LOG_TILE - k).min(room);
        Pass { log_n: self.log_n, low, k, log_columns, log_roots: self.log_n, inverse: inverse.into() }
    }

    fn dif(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        batch: u32,
        inverse: bool,
        before: Factors,
        after: Factors,
    ) -> Result<(), CudaError> {
        let top = self.passes.len() - 1;
        for (i, &(low, k)) in self.passes.iter().enumerate().rev() {
            let before = if i == top { before } else { Factors::NONE };
            let after = if i == 0 { after } else { Factors::NONE };
            self.launch_dif(stream, data, batch, self.pass(low, k, inverse), before, after)?;
        }
        Ok(())
    }

    fn dit(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        batch: u32,
        inverse: bool,
        before: Factors,
        after: Factors,
    ) -> Result<(), CudaError> {
        let top = self.passes.len() - 1;
        for (i, &(low, k)) in self.passes.iter().enumerate() {
            let before = if i == 0 { before } else { Factors::NONE };
            let after = if i == top { after } else { Factors::NONE };
            self.launch_dit(stream, data, batch, self.pass(low, k, inverse), before, after, None)?;
        }
        Ok(())
    }

    fn config(&self, pass: Pass, batch: u32) -> LaunchConfig {
        let log_tile = pass.k + pass.log_columns;
        LaunchConfig {
            grid_dim: (1 << (self.log_n - log_tile), batch, 1),
            block_dim: (1 << (log_tile - 2), 1, 1),
            shared_mem_bytes: 32 << log_tile,
        }
    }

    fn launch_dif(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        batch: u32,
        pass: Pass,
        before: Factors,
        after: Factors,
    ) -> Result<(), CudaError> {
        let (roots, inner) = (self.roots.as_slice(), self.inner.as_slice());
        let mut launch = stream.launch_builder(&self.kernels.dif);
        launch.arg(&data).arg(&roots).arg(&inner).arg(&pass).arg(&before).arg(&after);
        // SAFETY: the blocks' tiles cover `batch` vectors of n elements, which `data` holds; exponents stay below the order
        // of the tables' roots, and tables of factors cover the domain.
        unsafe { launch.launch(self.config(pass, batch)) }.doing("starting a transform")?;
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "they are the kernel's")]
    fn launch_dit(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        batch: u32,
        pass: Pass,
        before: Factors,
        after: Factors,
        product: Option<(Slice<'_, Limbs>, Element)>,
    ) -> Result<(), CudaError> {
        let (roots, inner) = (self.roots.as_slice(), self.inner.as_slice());
        let (multiplicand, constant) = product.map_or((0, Element([0; 4])), |(slice, c)| (slice.address(), c));
        let mut launch = stream.launch_builder(&self.kernels.dit);
        launch.arg(&data).arg(&roots).arg(&inner).arg(&pass).arg(&before).arg(&after).arg(&multiplicand).arg(&constant);
        // SAFETY: as in launch_dif; a multiplicand holds n elements and goes with a batch of one.
        unsafe { launch.launch(self.config(pass, batch)) }.doing("starting a transform")?;
        Ok(())
    }

    fn launch_fused(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        batch: u32,
        middle: Factors,
    ) -> Result<(), CudaError> {
        let inner = self.inner.as_slice();
        let pass = self.pass(0, self.passes[0].1, false);
        let mut launch = stream.launch_builder(&self.kernels.fused);
        launch.arg(&data).arg(&inner).arg(&pass).arg(&middle);
        // SAFETY: as in launch_dif.
        unsafe { launch.launch(self.config(pass, batch)) }.doing("starting a transform")?;
        Ok(())
    }

    fn tiny(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        batch: u32,
        before: Factors,
        after: Factors,
    ) -> Result<(), CudaError> {
        let mut launch = stream.launch_builder(&self.kernels.tiny);
        launch.arg(&data).arg(&self.log_n).arg(&batch).arg(&before).arg(&after);
        // SAFETY: one thread for each of `batch` vectors of n elements, which `data` holds.
        unsafe { launch.launch(grid((batch as usize).div_ceil(THREADS as usize), THREADS, 0)) }
            .doing("starting a transform")?;
        Ok(())
    }

    fn reverse(&self, stream: &Stream, data: Slice<'_, Limbs>, batch: u32) -> Result<(), CudaError> {
        let mut launch = stream.launch_builder(&self.kernels.reverse);
        launch.arg(&data).arg(&self.log_n);
        let mut config = grid(self.len().div_ceil(THREADS as usize), THREADS, 0);
        config.grid_dim.1 = batch;
        // SAFETY: the kernel permutes each of `batch` vectors of n elements, which `data` holds.
        unsafe { launch.launch(config) }.doing("starting a permutation")?;
        Ok(())
    }

    fn multiply(
        &self,
        stream: &Stream,
        data: Slice<'_, Limbs>,
        by: Slice<'_, Limbs>,
        constant: Element,
    ) -> Result<(), CudaError> {
        let n = data.len() as u32;
        let mut launch = stream.launch_builder(&self.kernels.multiply);
        launch.arg(&data).arg(&by).arg(&constant).arg(&n);
        // SAFETY: both slices hold n elements.
        unsafe { launch.launch(grid(data.len().div_ceil(THREADS as usize), THREADS, 0)) }
            .doing("starting a product")?;
        Ok(())
    }
}

/// The passes (lowest bit, number of bits) of a transform, from the lowest bits up; none for one or two points.
fn plan(log_n: u32) -> Vec<(u32, u32)> {
    if log_n < 2 {
        return Vec::new();
    }
    let strided = log_n.saturating_sub(LOG_TILE).div_ceil(LOG_STRIDED_MAX);
    let first = log_n.div_ceil(strided + 1).max(log_n.saturating_sub(strided * LOG_STRIDED_MAX));
    let mut passes = vec![(0, first)];
    let mut low = first;
    for left in (1..=strided).rev() {
        let k = (log_n - low) / left;
        passes.push((low, k));
        low += k;
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_every_bit_once_within_their_limits() {
        for log_n in 0..=LOG_DOMAIN_MAX {
            let passes = plan(log_n);
            let mut next = 0;
            for &(low, k) in &passes {
                assert_eq!(low, next, "2^{log_n}: {passes:?}");
                assert!(k >= 2 && k <= if low == 0 { LOG_TILE } else { LOG_STRIDED_MAX }, "2^{log_n}: {passes:?}");
                assert!(low == 0 || low >= 2, "2^{log_n}: {passes:?}");
                next += k;
            }
            assert_eq!(next, if log_n < 2 { 0 } else { log_n }, "2^{log_n}: {passes:?}");
        }
    }
}
