//! What one circuit may use. Every limit has a stated default; whoever passes one is told its name, value and setting.

use std::time::Duration;

/// One kibibyte, mebibyte and gibibyte, in bytes.
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Bytes of lists that a guest may pass in one call of `write-groups` or `write-public`, and read with one `blob.read`.
/// The contract states it.
pub const SINK_CALL_BYTES_MAX: usize = 4 * MIB as usize;

/// Bytes that a guest may pass in one call of any other host function.
pub const HOST_CALL_BYTES_MAX: usize = 64 * MIB as usize;

/// Bytes of native stack that a guest may use; deeper recursion traps.
pub const STACK_BYTES_MAX: usize = 512 * KIB as usize;

/// Core instances, and separately memories and tables, in one instance of a component.
pub const CORE_ITEMS_MAX: usize = 64;

/// Limits of one circuit. They are the operator's; a component cannot change them.
///
/// The defaults suit circuits of up to about 2^27 constraints on a machine that trusts none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the component file. Default 64 MiB.
    pub component_bytes: u64,
    /// Wall-clock time of compiling it, at which the child process is killed. Default 60 s.
    pub compile_time: Duration,
    /// Bytes of address space of the compiling child process. Default 4 GiB.
    pub compile_memory_bytes: u64,
    /// Bytes of native code that compiling may yield. Default 512 MiB.
    pub native_code_bytes: u64,

    /// Instances alive at once; one more is refused as busy. Default 64.
    pub instances: u32,
    /// Bytes of linear memory of one instance, all its memories together. Default 1 GiB; the format allows 4 GiB a memory.
    pub memory_bytes: u64,
    /// Elements of one instance's tables, all together. Default 100,000.
    pub table_elements: u64,

    /// Wall-clock time of instantiating, of `describe` and of `plan`, each. Default 10 s.
    pub plan_time: Duration,
    /// Wall-clock time of `record-shape`. Default 10 min.
    pub record_shape_time: Duration,
    /// Wall-clock time of `job.open`. Default 60 s.
    pub open_time: Duration,
    /// Wall-clock time of one `job.assign`. Default 10 min.
    pub assign_time: Duration,

    /// Bytes of parameters. Default 1 MiB.
    pub params_bytes: u64,
    /// Bytes of one input. Default 1 GiB.
    pub input_bytes: u64,

    /// Public inputs. Default 2^20.
    pub publics: u64,
    /// Aux variables of a partition. Default 2^27.
    pub aux: u64,
    /// Constraints. Default 2^27.
    pub constraints: u64,
    /// Terms of all three matrices together. Default 2^29.
    pub terms: u64,
    /// Distinct coefficients. Default 2^24.
    pub coefficients: u64,
    /// Bytes of constraint names, with what each costs to store. Default 1 GiB.
    pub name_bytes: u64,
    /// Bytes of one partition's assignment as planned: masks, elements and public inputs. Default 5 GiB.
    pub assignment_bytes: u64,

    /// Lines of log that one instance may write; the rest is dropped. Default 1,000.
    pub log_lines: u32,
    /// Bytes of log that one instance may write; the rest is dropped. Default 256 KiB.
    pub log_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            component_bytes: 64 * MIB,
            compile_time: Duration::from_secs(60),
            compile_memory_bytes: 4 * GIB,
            native_code_bytes: 512 * MIB,
            instances: 64,
            memory_bytes: GIB,
            table_elements: 100_000,
            plan_time: Duration::from_secs(10),
            record_shape_time: Duration::from_secs(600),
            open_time: Duration::from_secs(60),
            assign_time: Duration::from_secs(600),
            params_bytes: MIB,
            input_bytes: GIB,
            publics: 1 << 20,
            aux: 1 << 27,
            constraints: 1 << 27,
            terms: 1 << 29,
            coefficients: 1 << 24,
            name_bytes: GIB,
            assignment_bytes: 5 * GIB,
            log_lines: 1_000,
            log_bytes: 256 * KIB,
        }
    }
}

/// Whole numbers in sentences are grouped in threes, so that a reader sees their size.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped_in_threes() {
        for (value, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_073_741_824, "1,073,741,824")] {
            assert_eq!(grouped(value), text);
        }
    }
}
