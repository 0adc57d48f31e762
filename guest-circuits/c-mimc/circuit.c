// Knowledge of a preimage of MiMC in the Feistel form of two elements, LongsightF322p3 (Albrecht et al. 2016): a circuit
// without Rust, without a library, and without a tool that writes bindings.
//
// A round takes (l, r) to (r + (l + c)^3, l). The image, public, is the left half after all rounds. Two constraints a round:
// (l + c)^2 = square, and square (l + c) = next - r.
#include "fr.h"
#include "input.h"
#include "memory.h"

enum {
    ROUNDS = 322,
    AUX = 2 + 2 * ROUNDS - 1,  // both halves; a square and the next left half of every round, but the last is public
    CONSTRAINTS = 2 * ROUNDS,
    GROUPS = (AUX + 63) / 64,
    INPUT_BYTES_MAX = 1024,
    JOBS_MAX = 16,  // inputs that are open at once in an instance
    LIMBS = 4,
};

struct job {
    bool open;
    fr left, right;  // Montgomery
};
static struct job jobs[JOBS_MAX];

// Four words of SplitMix64 from state 0, the last without its two topmost bits, which makes it smaller than r's.
static fr round_constant(int round) {
    fr constant;
    for (int i = 0; i < LIMBS; i++) {
        uint64_t word = (uint64_t)(LIMBS * round + i + 1) * 0x9e3779b97f4a7c15;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
        word = (word ^ word >> 27) * 0x94d049bb133111eb;
        constant.limbs[i] = word ^ word >> 31;
    }
    constant.limbs[3] >>= 2;
    return constant;
}

static zk_error refusal(zk_error_kind kind, zk_string text) { return (zk_error){kind, text}; }

// The circuit has no parameters: nothing, or an object of none.
static bool has_params(const uint8_t *params, size_t bytes) {
    reader json = {params, params + bytes};
    if (bytes == 0) return false;
    if (!take(&json, "{") || !take(&json, "}")) return true;
    skip_space(&json);
    return json.at != json.end;
}
#define NO_PARAMS refusal(ZK_BAD_PARAMS, ZK_STRING("this circuit has no parameters; {} was expected"))

ZK_EXPORT("describe") zk_info *describe(void) {
    static zk_info info;
    info = (zk_info){
        ZK_STRING("c-mimc"),
        ZK_STRING("0.1.0"),
        ZK_STRING("Knowledge of a preimage of MiMC, 322 rounds of its Feistel form. The image is public. A circuit in C."),
        ZK_STRING(""),
        ZK_STRING("{\"left\": \"0x...\", \"right\": \"0x...\"}, hexadecimal, each below r"),
    };
    return &info;
}

ZK_EXPORT("plan") zk_plan_result *plan(const uint8_t *params, size_t bytes) {
    static const zk_segment segment = {.aux_count = AUX, .max_full = AUX, .weight = 1};
    static zk_plan_result result;
    result = (zk_plan_result){.layout = {1, ZK_MONTGOMERY, &segment, 1}};
    if (has_params(params, bytes)) result = (zk_plan_result){.refused = 1, .error = NO_PARAMS};
    return &result;
}

// One matrix as it is written: row lengths, and the terms of all rows.
typedef struct {
    uint32_t rows, terms, row_start, lengths[CONSTRAINTS], columns[2 * CONSTRAINTS], coefficients[2 * CONSTRAINTS];
} matrix;

enum { ONE, MINUS_ONE, FIRST_CONSTANT };  // indices into the dictionary of coefficients

static void add_term(matrix *m, uint32_t column, uint32_t coefficient) {
    m->columns[m->terms] = column;
    m->coefficients[m->terms++] = coefficient;
}

static void end_row(matrix *m) {
    m->lengths[m->rows++] = m->terms - m->row_start;
    m->row_start = m->terms;
}

// l + c
static void add_base(matrix *m, uint32_t left, uint32_t round) {
    add_term(m, left, ONE);
    add_term(m, ZK_PUBLIC, FIRST_CONSTANT + round);
    end_row(m);
}

static char *append(char *at, const char *text) {
    while (*text) *at++ = *text++;
    return at;
}

static void name_round(zk_shape out, int round) {
    char names[64], *at = names;
    for (int i = 0; i < 2; i++) {
        at = append(at, "round ");
        for (int unit = 100; unit > 0; unit /= 10)
            if (round >= unit || unit == 1) *at++ = (char)('0' + round / unit % 10);
        at = append(at, i == 0 ? "/square\n" : "/cube\n");
    }
    zk_name_rows(out, names, (size_t)(at - names));
}

ZK_EXPORT("record-shape")
zk_shape_result *record_shape(const uint8_t *params, size_t bytes, int32_t names, zk_shape out) {
    static zk_shape_result result;
    static fr coefficients[FIRST_CONSTANT + ROUNDS];
    static matrix matrices[3];
    matrix *a = &matrices[ZK_A], *b = &matrices[ZK_B], *c = &matrices[ZK_C];
    for (int m = ZK_A; m <= ZK_C; m++) matrices[m].rows = matrices[m].terms = matrices[m].row_start = 0;

    coefficients[ONE] = (fr){{1}};
    coefficients[MINUS_ONE] = FR_MODULUS;
    coefficients[MINUS_ONE].limbs[0] -= 1;
    uint32_t left = 0, right = 1, column = 2;
    for (int round = 0; round < ROUNDS; round++) {
        coefficients[FIRST_CONSTANT + round] = round_constant(round);
        uint32_t square = column++, next = round + 1 < ROUNDS ? column++ : ZK_PUBLIC + 1;
        add_base(a, left, (uint32_t)round);
        add_base(b, left, (uint32_t)round);
        add_term(c, square, ONE);
        end_row(c);

        add_term(a, square, ONE);
        end_row(a);
        add_base(b, left, (uint32_t)round);
        add_term(c, next, ONE);
        add_term(c, right, MINUS_ONE);
        end_row(c);
        right = left;
        left = next;
    }

    if (has_params(params, bytes)) {
        result = (zk_shape_result){.refused = 1, .error = NO_PARAMS};
    } else {
        zk_add_coefficients(out, coefficients, LIMBS * (FIRST_CONSTANT + ROUNDS));
        for (int m = ZK_A; m <= ZK_C; m++) {
            const matrix *rows = &matrices[m];
            zk_add_rows(out, m, rows->lengths, rows->rows, rows->columns, rows->terms, rows->coefficients, rows->terms);
        }
        for (int round = 0; names && round < ROUNDS; round++) name_round(out, round);
        result = (zk_shape_result){.counts = {.publics = 1, .aux = AUX, .constraints = CONSTRAINTS}};
    }
    zk_drop_shape(out);
    return &result;
}

static zk_error open_input(struct job *job, zk_blob input) {
    if (zk_blob_size(input) > INPUT_BYTES_MAX)
        return refusal(ZK_BAD_INPUT, ZK_STRING("an input of at most 1,024 bytes was expected"));
    zk_bytes bytes;
    zk_blob_read(input, 0, INPUT_BYTES_MAX, &bytes);
    fr left, right;
    zk_string wrong = read_input((reader){bytes.bytes, bytes.bytes + bytes.count}, &left, &right);
    if (wrong.bytes == 0) *job = (struct job){true, fr_to_montgomery(left), fr_to_montgomery(right)};
    return refusal(ZK_BAD_INPUT, wrong);
}

ZK_EXPORT("[static]job.open")
zk_open_result *open(const uint8_t *params, size_t bytes, zk_blob input) {
    static zk_open_result result;
    struct job *job = jobs;
    while (job < jobs + JOBS_MAX && job->open) job++;

    zk_error error;
    if (has_params(params, bytes)) error = NO_PARAMS;
    else if (job == jobs + JOBS_MAX) error = refusal(ZK_INTERNAL, ZK_STRING("an instance has at most 16 inputs open"));
    else error = open_input(job, input);
    zk_drop_blob(input);

    result = (zk_open_result){.refused = 1, .error = error};
    if (error.text.bytes == 0) result = (zk_open_result){.job = zk_new_job(job)};
    return &result;
}

ZK_EXPORT("[method]job.assign")
zk_assign_result *assign(const struct job *job, uint32_t partition, uint32_t segment, zk_witness out) {
    static zk_assign_result result;
    static fr values[AUX];
    result = (zk_assign_result){0};
    if (partition != 0 || segment != 0) {
        result = (zk_assign_result){1, refusal(ZK_INTERNAL, ZK_STRING("the plan has one partition of one segment"))};
    } else {
        fr left = job->left, right = job->right;
        size_t count = 0;
        values[count++] = left;
        values[count++] = right;
        for (int round = 0; round < ROUNDS; round++) {
            fr base = fr_add(left, fr_to_montgomery(round_constant(round)));
            fr square = fr_mul(base, base);
            fr next = fr_add(right, fr_mul(square, base));
            values[count++] = square;
            if (round + 1 < ROUNDS) values[count++] = next;
            right = left;
            left = next;
        }
        // Every variable travels as a full element.
        uint64_t masks[2 * GROUPS] = {0};
        for (int i = 0; i < AUX; i++) masks[2 * (i / 64)] |= 1ull << i % 64;
        zk_write_groups(out, masks, 2 * GROUPS, values, LIMBS * AUX);
        fr image = fr_to_canonical(left);
        zk_write_public(out, &image, LIMBS);
        __builtin_memset(values, 0, sizeof values);
    }
    zk_drop_witness(out);
    return &result;
}

ZK_EXPORT("[dtor]job") void close(struct job *job) { *job = (struct job){0}; }

ZK_AFTER("plan") void after_plan(const void *result) { (void)result; release_lists(); }
ZK_AFTER("record-shape") void after_record_shape(const void *result) { (void)result; release_lists(); }
ZK_AFTER("[static]job.open") void after_open(const void *result) { (void)result; release_lists(); }
ZK_AFTER("[method]job.assign") void after_assign(const void *result) { (void)result; release_lists(); }
