// The contract between the zkhost host and a circuit, wit/v0.1/circuit.wit, as a C program sees it.
//
// A component calls a module by the canonical ABI: a list or a string is a pointer and a length in elements; a result that
// does not fit one number lies in memory, and the function returns where; lists that the host passes in were allocated by
// `cabi_realloc`. A resource is a number, and one that was borrowed is dropped before the export returns.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct { uint64_t limbs[4]; } zk_element;  // least significant limb first, below the modulus
typedef struct { const char *text; size_t bytes; } zk_string;
typedef struct { const uint8_t *bytes; size_t count; } zk_bytes;

typedef int32_t zk_witness;  // where an assignment goes
typedef int32_t zk_shape;    // where a constraint system goes
typedef int32_t zk_blob;     // an input

#define ZK_IMPORT(interface, name) \
    __attribute__((import_module("zkhost:circuit/" interface "@0.1.0"), import_name(name)))
#define ZK_EXPORT(name) __attribute__((export_name("zkhost:circuit/circuit@0.1.0#" name)))
#define ZK_AFTER(name) __attribute__((export_name("cabi_post_zkhost:circuit/circuit@0.1.0#" name)))
#define ZK_STRING(literal) ((zk_string){literal, sizeof(literal) - 1})

// interface sink

ZK_IMPORT("sink", "[method]witness.write-groups")
void zk_write_groups(zk_witness, const uint64_t *masks, size_t words, const zk_element *elements, size_t limbs);
ZK_IMPORT("sink", "[method]witness.write-public")
void zk_write_public(zk_witness, const zk_element *elements, size_t limbs);
ZK_IMPORT("sink", "[resource-drop]witness") void zk_drop_witness(zk_witness);

enum { ZK_A, ZK_B, ZK_C };           // the matrices
static const uint32_t ZK_PUBLIC = 1u << 31;  // the bit of a column that is a public input

ZK_IMPORT("sink", "[method]shape.add-coefficients")
uint32_t zk_add_coefficients(zk_shape, const zk_element *coefficients, size_t limbs);
ZK_IMPORT("sink", "[method]shape.add-rows")
void zk_add_rows(zk_shape, int32_t matrix, const uint32_t *lengths, size_t rows, const uint32_t *columns, size_t terms,
                 const uint32_t *coefficients, size_t terms_again);
ZK_IMPORT("sink", "[method]shape.name-rows") void zk_name_rows(zk_shape, const char *paths, size_t bytes);
ZK_IMPORT("sink", "[resource-drop]shape") void zk_drop_shape(zk_shape);

// interface source

ZK_IMPORT("source", "[method]blob.size") uint64_t zk_blob_size(zk_blob);
ZK_IMPORT("source", "[method]blob.read") void zk_blob_read(zk_blob, uint64_t offset, uint32_t length, zk_bytes *read);
ZK_IMPORT("source", "[resource-drop]blob") void zk_drop_blob(zk_blob);

// interface circuit: what a circuit exports

typedef enum { ZK_BAD_PARAMS, ZK_BAD_INPUT, ZK_UNSATISFIED, ZK_UNSUPPORTED, ZK_INTERNAL, ZK_CANCELLED } zk_error_kind;
typedef struct { uint8_t kind; zk_string text; } zk_error;
typedef struct { zk_string name, version, about, params_help, input_help; } zk_info;

enum { ZK_CANONICAL, ZK_MONTGOMERY };
typedef struct { uint64_t first_aux, aux_count, max_full; uint32_t weight; } zk_segment;
typedef struct { uint32_t partitions; uint8_t encoding; const zk_segment *segments; size_t segment_count; } zk_layout;
typedef struct { uint64_t publics, aux, constraints; } zk_counts;

// Results; `refused` tells which member of the union holds.
typedef struct { uint8_t refused; union { zk_layout layout; zk_error error; }; } zk_plan_result;
typedef struct { uint8_t refused; union { zk_counts counts; zk_error error; }; } zk_shape_result;
typedef struct { uint8_t refused; union { int32_t job; zk_error error; }; } zk_open_result;
typedef struct { uint8_t refused; zk_error error; } zk_assign_result;

// A circuit's own resource `job`: the host holds a handle, the circuit what it points to.
#define ZK_JOB_IMPORT(name) \
    __attribute__((import_module("[export]zkhost:circuit/circuit@0.1.0"), import_name(name)))
struct job;
ZK_JOB_IMPORT("[resource-new]job") int32_t zk_new_job(struct job *);

_Static_assert(sizeof(zk_segment) == 32 && sizeof(zk_plan_result) == 20 && sizeof(zk_shape_result) == 32 &&
                   sizeof(zk_open_result) == 16 && sizeof(zk_assign_result) == 16 && sizeof(zk_info) == 40,
               "the layouts of the canonical ABI");
