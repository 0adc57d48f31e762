//! Limits by name, for whoever sets them in text: a command line, a circuit's manifest. Times are in whole seconds.

use crate::limits::Limits;
use std::collections::BTreeMap;
use std::time::Duration;

impl Limits {
    /// Set one limit.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), String> {
        let mut fields = fields(self);
        let Some((_, field)) = fields.iter_mut().find(|(known, _)| *known == name) else {
            let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no limit `{name}`; there are: {}", names.join(", ")));
        };
        match field {
            Field::Long(field) => **field = value,
            Field::Seconds(field) => **field = Duration::from_secs(value),
            Field::Short(field) => {
                **field = value.try_into().map_err(|_| format!("{name} is at most {}", u32::MAX))?;
            }
        }
        Ok(())
    }

    /// All limits.
    pub fn named(&self) -> BTreeMap<&'static str, u64> {
        let mut limits = self.clone();
        fields(&mut limits).into_iter().map(|(name, field)| (name, field.get())).collect()
    }
}

/// A field of [`Limits`].
enum Field<'a> {
    Long(&'a mut u64),
    Short(&'a mut u32),
    Seconds(&'a mut Duration),
}

impl Field<'_> {
    fn get(&self) -> u64 {
        match self {
            Field::Long(value) => **value,
            Field::Short(value) => u64::from(**value),
            Field::Seconds(value) => value.as_secs(),
        }
    }
}

/// Every limit that a user may set, by name.
fn fields(limits: &mut Limits) -> Vec<(&'static str, Field<'_>)> {
    vec![
        ("component_bytes", Field::Long(&mut limits.component_bytes)),
        ("compile_memory_bytes", Field::Long(&mut limits.compile_memory_bytes)),
        ("native_code_bytes", Field::Long(&mut limits.native_code_bytes)),
        ("memory_bytes", Field::Long(&mut limits.memory_bytes)),
        ("table_elements", Field::Long(&mut limits.table_elements)),
        ("params_bytes", Field::Long(&mut limits.params_bytes)),
        ("input_bytes", Field::Long(&mut limits.input_bytes)),
        ("publics", Field::Long(&mut limits.publics)),
        ("aux", Field::Long(&mut limits.aux)),
        ("constraints", Field::Long(&mut limits.constraints)),
        ("terms", Field::Long(&mut limits.terms)),
        ("coefficients", Field::Long(&mut limits.coefficients)),
        ("name_bytes", Field::Long(&mut limits.name_bytes)),
        ("assignment_bytes", Field::Long(&mut limits.assignment_bytes)),
        ("log_bytes", Field::Long(&mut limits.log_bytes)),
        ("instances", Field::Short(&mut limits.instances)),
        ("log_lines", Field::Short(&mut limits.log_lines)),
        ("compile_time", Field::Seconds(&mut limits.compile_time)),
        ("plan_time", Field::Seconds(&mut limits.plan_time)),
        ("record_shape_time", Field::Seconds(&mut limits.record_shape_time)),
        ("open_time", Field::Seconds(&mut limits.open_time)),
        ("assign_time", Field::Seconds(&mut limits.assign_time)),
    ]
}
