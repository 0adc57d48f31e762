//! The host functions that a guest may call: the imports of world `guest`, and nothing else.
//!
//! A call of an export lends the guest at most one resource of each kind, so the resources need no table: they live in
//! the store's [`State`], and a handle stands for the one that is lent.
//!
//! `sink` and `source` are defined by hand rather than generated, because generated functions copy every list into a
//! `Vec`; here a guest's list is borrowed in its linear memory and copied once, by its destination.

use crate::bindings::zkhost::circuit::{accel, report, sink::Matrix, types};
use crate::error::{Fault, printable_lines};
use crate::limits::SINK_CALL_BYTES_MAX;
use crate::state::State;
use ff::Field;
use std::sync::Arc;
use wasmtime::component::{HasSelf, Linker, Resource, ResourceType, WasmList, WasmStr};
use wasmtime::{Result, StoreContextMut};
use zkhost_groth16::r1cs::{MatrixId, ShapeError};
use zkhost_groth16::scalar;

/// The host's side of a handle to `sink.witness`. The destination itself is in [`State`].
pub enum Witness {}
/// The host's side of a handle to `sink.shape`.
pub enum Shape {}
/// The host's side of a handle to `source.blob`.
pub enum Blob {}

/// The names under which interfaces are linked carry the contract's version.
const SINK: &str = "zkhost:circuit/sink@0.1.0";
const SOURCE: &str = "zkhost:circuit/source@0.1.0";

/// Define every import of the world.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    types::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    add_witness(linker)?;
    add_shape(linker)?;
    add_source(linker)?;
    report::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    accel::add_to_linker::<_, HasSelf<State>>(linker, |state| state)
}

fn add_witness(linker: &mut Linker<State>) -> Result<()> {
    let mut sink = linker.instance(SINK)?;
    sink.resource("witness", ResourceType::host::<Witness>(), |_, _| Ok(()))?;
    sink.func_wrap(
        "[method]witness.write-groups",
        |mut store: StoreContextMut<'_, State>,
         (_, masks, elements): (Resource<Witness>, WasmList<u64>, WasmList<u64>)| {
            check_call_bytes("write-groups", 8 * (masks.len() + elements.len()))?;
            // The lists borrow the store, so their destination leaves it for as long as they are read.
            let mut sink = store.data_mut().take_witness("write-groups")?;
            let written = sink.write_groups(masks.as_le_slice(&store), elements.as_le_slice(&store));
            store.data_mut().witness = Some(sink);
            written.map_err(|error| misuse("write-groups", error))
        },
    )?;
    sink.func_wrap(
        "[method]witness.write-public",
        |mut store: StoreContextMut<'_, State>, (_, elements): (Resource<Witness>, WasmList<u64>)| {
            check_call_bytes("write-public", 8 * elements.len())?;
            let mut sink = store.data_mut().take_witness("write-public")?;
            let written = sink.write_public(elements.as_le_slice(&store));
            store.data_mut().witness = Some(sink);
            written.map_err(|error| misuse("write-public", error))
        },
    )
}

fn add_shape(linker: &mut Linker<State>) -> Result<()> {
    let mut sink = linker.instance(SINK)?;
    sink.resource("shape", ResourceType::host::<Shape>(), |_, _| Ok(()))?;
    sink.func_wrap(
        "[method]shape.add-coefficients",
        |mut store: StoreContextMut<'_, State>, (_, limbs): (Resource<Shape>, WasmList<u64>)| {
            let mut shape = store.data_mut().take_shape("add-coefficients")?;
            let first = shape.add_coefficients(limbs.as_le_slice(&store));
            store.data_mut().shape = Some(shape);
            Ok((first.map_err(|error| shape_fault("add-coefficients", error))?,))
        },
    )?;
    type Rows = (Resource<Shape>, Matrix, WasmList<u32>, WasmList<u32>, WasmList<u32>);
    sink.func_wrap(
        "[method]shape.add-rows",
        |mut store: StoreContextMut<'_, State>, (_, matrix, row_lengths, columns, coefficients): Rows| {
            let mut shape = store.data_mut().take_shape("add-rows")?;
            let (row_lengths, columns) = (row_lengths.as_le_slice(&store), columns.as_le_slice(&store));
            let added = shape.add_rows(matrix.into(), row_lengths, columns, coefficients.as_le_slice(&store));
            store.data_mut().shape = Some(shape);
            added.map_err(|error| shape_fault("add-rows", error))
        },
    )?;
    sink.func_wrap(
        "[method]shape.name-rows",
        |mut store: StoreContextMut<'_, State>, (_, paths): (Resource<Shape>, WasmStr)| {
            let mut shape = store.data_mut().take_shape("name-rows")?;
            let named = shape.name_rows(&printable_lines(&paths.to_str(&store)?));
            store.data_mut().shape = Some(shape);
            named.map_err(|error| shape_fault("name-rows", error))
        },
    )
}

fn add_source(linker: &mut Linker<State>) -> Result<()> {
    let mut source = linker.instance(SOURCE)?;
    source.resource("blob", ResourceType::host::<Blob>(), |_, _| Ok(()))?;
    source.func_wrap("[method]blob.size", |store: StoreContextMut<'_, State>, (_,): (Resource<Blob>,)| {
        Ok((store.data().input("size")?.len() as u64,))
    })?;
    source.func_wrap(
        "[method]blob.read",
        |mut store: StoreContextMut<'_, State>, (_, offset, len): (Resource<Blob>, u64, u32)| {
            let input = store.data().input("read")?;
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(input.len());
            let end = start + (len as usize).min(SINK_CALL_BYTES_MAX).min(input.len() - start);
            let piece: Arc<[u8]> = input[start..end].into();
            Ok((store.data_mut().lend_piece(piece),))
        },
    )
}

/// A sentence for a list that is longer than the contract allows in one call.
fn check_call_bytes(function: &str, bytes: usize) -> Result<(), Fault> {
    if bytes > SINK_CALL_BYTES_MAX {
        return Err(Fault::Misuse(format!(
            "`{function}` was given {bytes} bytes; one call carries at most {SINK_CALL_BYTES_MAX}: send less at a time"
        )));
    }
    Ok(())
}

fn misuse(function: &str, error: impl std::fmt::Display) -> wasmtime::Error {
    wasmtime::Error::new(Fault::Misuse(format!("`{function}`: {error}")))
}

fn shape_fault(function: &str, error: ShapeError) -> wasmtime::Error {
    Fault::shape(error, |text| Fault::Misuse(format!("`{function}`: {text}"))).into()
}

impl types::Host for State {}

impl report::Host for State {
    fn log(&mut self, level: report::Level, message: String) -> Result<()> {
        self.log_line(level, &message);
        Ok(())
    }

    fn progress(&mut self, done: u64) -> Result<bool> {
        self.observer.progress(self.place, done);
        Ok(!self.observer.cancelled())
    }
}

impl accel::Host for State {
    fn invert_one(&mut self, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64, u64, u64)> {
        let Some(element) = scalar::from_montgomery(&[a, b, c, d]) else {
            return Err(misuse("invert-one", "the element is not below the modulus of Fr"));
        };
        let inverse = element.invert().unwrap_or(scalar::Scalar::ZERO);
        let [a, b, c, d] = scalar::to_montgomery(&inverse);
        Ok((a, b, c, d))
    }
}

impl From<Matrix> for MatrixId {
    fn from(matrix: Matrix) -> Self {
        match matrix {
            Matrix::A => MatrixId::A,
            Matrix::B => MatrixId::B,
            Matrix::C => MatrixId::C,
        }
    }
}
