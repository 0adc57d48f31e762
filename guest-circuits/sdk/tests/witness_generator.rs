//! bellpepper's witness generators: gadgets that fill in values without allocating variables one by one.

use serde::Deserialize;
use zkhost_guest::bellpepper_core::{ConstraintSystem, SynthesisError};
use zkhost_guest::{Circuit, Error, Fr, Info, NoParams, Scope, Synthesis, native};

/// How a generator writes its values.
#[derive(Clone, Copy, Debug, Deserialize)]
enum How {
    /// One by one, as without a generator.
    Alloc,
    /// Into room for both kinds at once.
    Room,
    /// Into room for each kind.
    Rooms,
    /// As slices.
    Extend,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    how: How,
}

/// Eight aux variables and four public inputs, of which a generator gives three and two in the middle and at the end.
struct Generated(Option<How>);

impl Circuit for Generated {
    type Field = Fr;
    type Params = NoParams;
    type Input = Input;

    fn info() -> Info {
        Info { name: "generated", version: "1.0.0", about: "", params_help: "", input_help: "" }
    }

    fn blank(_params: &NoParams) -> Result<Self, Error> {
        Ok(Generated(None))
    }

    fn open(_params: &NoParams, input: Input) -> Result<Self, Error> {
        Ok(Generated(Some(input.how)))
    }

    fn synthesize(&self, _scope: Scope, cs: &mut Synthesis<'_, Fr>) -> Result<(), Error> {
        let missing = SynthesisError::AssignmentMissing;
        cs.alloc(|| "first", || self.0.map(|_| Fr::from(10)).ok_or(SynthesisError::AssignmentMissing))?;
        self.generate(cs, [0, 1, 12], [100, 101])?;
        cs.alloc(|| "middle", || self.0.map(|_| Fr::ONE).ok_or(missing))?;
        self.generate(cs, [13, 0, 1], [102, 103])?;
        Ok(())
    }
}

impl Generated {
    fn generate(&self, cs: &mut Synthesis<'_, Fr>, aux: [u64; 3], publics: [u64; 2]) -> Result<(), SynthesisError> {
        let (aux, publics) = (aux.map(Fr::from), publics.map(Fr::from));
        assert_eq!(cs.is_witness_generator(), self.0.is_some(), "only a pass with values generates a witness");
        match self.0 {
            None | Some(How::Alloc) => {
                for value in aux {
                    cs.alloc(|| "aux", || Ok(value))?;
                }
                for value in publics {
                    cs.alloc_input(|| "public", || Ok(value))?;
                }
            }
            Some(How::Room) => {
                let (aux_room, public_room) = cs.allocate_empty(3, 2);
                aux_room.copy_from_slice(&aux);
                public_room.copy_from_slice(&publics);
            }
            Some(How::Rooms) => {
                cs.allocate_empty_aux(3).copy_from_slice(&aux);
                cs.allocate_empty_inputs(2).copy_from_slice(&publics);
            }
            Some(How::Extend) => {
                cs.extend_aux(&aux);
                cs.extend_inputs(&publics);
            }
        }
        Ok(())
    }
}

/// A generator of this kind gives the same assignment as single allocations.
fn check(how: &str) {
    let run = |how: &str| {
        native::run::<Generated>(b"", format!(r#"{{"how": "{how}"}}"#).as_bytes()).expect("a run").assignments
    };
    let assignments = run(how);
    assert_eq!(assignments[0].aux, [10, 0, 1, 12, 1, 13, 0, 1].map(Fr::from), "{how}");
    assert_eq!(assignments[0].publics, [100, 101, 102, 103].map(Fr::from), "{how}");
    assert!(assignments == run("Alloc"), "{how}");
}

#[test]
fn generated_values_equal_allocated_ones_in_order() {
    for how in ["Alloc", "Room", "Rooms", "Extend"] {
        check(how);
    }
}
