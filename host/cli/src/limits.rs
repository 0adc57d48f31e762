//! The limits of a circuit on the command line: `--limit NAME=VALUE`.

use std::collections::BTreeMap;
use std::time::Duration;
use zkhost_runtime::Limits;

/// A limit that was set by hand.
#[derive(Clone)]
pub struct Setting {
    name: String,
    value: u64,
}

/// Parse `NAME=VALUE`.
pub fn parse_setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as memory_bytes=2000000000")?;
    let value = value.replace('_', "").parse().map_err(|_| format!("`{value}` is no whole number"))?;
    let setting = Setting { name: name.to_owned(), value };
    setting.apply(&mut Limits::default())?;
    Ok(setting)
}

/// The default limits with some of them set by hand.
pub fn with_settings(settings: &[Setting]) -> Result<Limits, String> {
    let mut limits = Limits::default();
    settings.iter().try_for_each(|setting| setting.apply(&mut limits))?;
    Ok(limits)
}

/// All limits by name; times are in seconds.
pub fn values(limits: &Limits) -> BTreeMap<&'static str, u64> {
    let mut limits = limits.clone();
    fields(&mut limits).into_iter().map(|(name, field)| (name, field.get())).collect()
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

impl Setting {
    fn apply(&self, limits: &mut Limits) -> Result<(), String> {
        let mut fields = fields(limits);
        let Some((_, field)) = fields.iter_mut().find(|(name, _)| *name == self.name) else {
            let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no limit `{}`; there are: {}", self.name, names.join(", ")));
        };
        match field {
            Field::Long(value) => **value = self.value,
            Field::Seconds(value) => **value = Duration::from_secs(self.value),
            Field::Short(value) => {
                **value = self.value.try_into().map_err(|_| format!("{} is at most {}", self.name, u32::MAX))?;
            }
        }
        Ok(())
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
