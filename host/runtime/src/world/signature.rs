//! The type of a function spelt out in WIT, named types by their structure, so that two can be compared and shown.

use std::fmt::Write;
use wit_parser::{Function, Handle, Resolve, Type, TypeDefKind, TypeId};

/// Bytes of a signature at most. The contract's are shorter, so one that was cut differs from all of them; without a bound
/// a small component could spell out types of any size.
const SIGNATURE_BYTES_MAX: usize = 4_096;

/// A function's type, such as `func(params: list<u8>) -> u32`.
pub(super) fn signature(resolve: &Resolve, function: &Function) -> String {
    let mut writer = Writer { resolve, out: String::new() };
    if function.kind.is_async() {
        writer.out += "async ";
    }
    writer.out += "func(";
    writer.list(&function.params, |writer, param| {
        let _ = write!(writer.out, "{}: ", param.name);
        writer.ty(&param.ty);
    });
    writer.out.push(')');
    if let Some(result) = &function.result {
        writer.out += " -> ";
        writer.ty(result);
    }
    writer.out
}

struct Writer<'a> {
    resolve: &'a Resolve,
    out: String,
}

impl Writer<'_> {
    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out += ", ";
            }
            if self.out.len() > SIGNATURE_BYTES_MAX {
                self.out += "...";
                return;
            }
            write(self, item);
        }
    }

    fn ty(&mut self, ty: &Type) {
        self.out += match ty {
            Type::Bool => "bool",
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 => "u64",
            Type::S8 => "s8",
            Type::S16 => "s16",
            Type::S32 => "s32",
            Type::S64 => "s64",
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::Char => "char",
            Type::String => "string",
            Type::ErrorContext => "error-context",
            Type::Id(id) => return self.definition(*id),
        };
    }

    fn definition(&mut self, id: TypeId) {
        if self.out.len() > SIGNATURE_BYTES_MAX {
            return;
        }
        let definition = &self.resolve.types[id];
        match &definition.kind {
            TypeDefKind::Type(ty) => self.ty(ty),
            TypeDefKind::Resource => self.out += definition.name.as_deref().unwrap_or("resource"),
            TypeDefKind::Handle(Handle::Own(resource)) => self.definition(*resource),
            TypeDefKind::Handle(Handle::Borrow(resource)) => self.wrapped("borrow", |w| w.definition(*resource)),
            TypeDefKind::List(item) => self.wrapped("list", |w| w.ty(item)),
            TypeDefKind::Option(item) => self.wrapped("option", |w| w.ty(item)),
            TypeDefKind::Tuple(tuple) => self.wrapped("tuple", |w| w.list(&tuple.types, Self::ty)),
            TypeDefKind::Result(result) => self.wrapped("result", |w| {
                w.list(&[&result.ok, &result.err], |w, ty| match ty {
                    Some(ty) => w.ty(ty),
                    None => w.out.push('_'),
                });
            }),
            TypeDefKind::Record(record) => self.braced("record", &record.fields, |w, field| {
                let _ = write!(w.out, "{}: ", field.name);
                w.ty(&field.ty);
            }),
            TypeDefKind::Variant(variant) => self.braced("variant", &variant.cases, |w, case| {
                w.out += &case.name;
                if let Some(ty) = &case.ty {
                    w.out.push('(');
                    w.ty(ty);
                    w.out.push(')');
                }
            }),
            TypeDefKind::Enum(cases) => self.braced("enum", &cases.cases, |w, case| w.out += &case.name),
            TypeDefKind::Flags(flags) => self.braced("flags", &flags.flags, |w, flag| w.out += &flag.name),
            // The contract has none of the others.
            other => self.out += other.as_str(),
        }
    }

    fn wrapped(&mut self, name: &str, inner: impl FnOnce(&mut Self)) {
        let _ = write!(self.out, "{name}<");
        inner(self);
        self.out.push('>');
    }

    fn braced<T>(&mut self, name: &str, items: &[T], write: impl FnMut(&mut Self, &T)) {
        let _ = write!(self.out, "{name} {{ ");
        self.list(items, write);
        self.out += " }";
    }
}
