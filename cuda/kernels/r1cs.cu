// Products of a sparse matrix and z. Rows are compressed; a term is a column and an index into a dictionary of
// coefficients, of one, two or four bytes. The first two entries of the dictionary are 1 and -1, which most terms have and
// which cost no product.
//
// A short row is one thread's. A long one is cut into units, each of which a warp sums; one thread adds up the units.
#include "fr.cuh"

constexpr uint32_t ONE = 0, MINUS_ONE = 1;
constexpr uint32_t WARP = 32;
constexpr uint32_t THREADS = 128;  // of a block of r1cs_unit; mirrored in r1cs.rs

template <typename index_t> struct matrix_t {
    const uint32_t* row_ends;
    const uint32_t* columns;
    const index_t* coefficients;
    const fr_t* dictionary;

    ZK_INLINE fr_t add_term(const fr_t& sum, uint32_t term, const fr_t* z) const {
        const fr_t variable = fr_load(z + columns[term]);
        const uint32_t coefficient = coefficients[term];
        if (coefficient == ONE) return sum + variable;
        if (coefficient == MINUS_ONE) return sum - variable;
        return sum + fr_load(dictionary + coefficient) * variable;
    }
};

// out[row] for all `domain` rows: those of the matrix (long ones excepted, they are done elsewhere), then z[0], z[1], ...
// for the rows that bind `bound` variables, then zeros.
template <typename index_t>
static ZK_INLINE void rows(const matrix_t<index_t>& matrix, const fr_t* z, fr_t* out, uint32_t row_count, uint32_t bound,
                           uint32_t domain, uint32_t short_max) {
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= domain) return;
    fr_t sum = fr_t::zero();
    if (row < row_count) {
        const uint32_t start = row == 0 ? 0 : matrix.row_ends[row - 1], end = matrix.row_ends[row];
        if (end - start > short_max) return;
#pragma unroll 1
        for (uint32_t term = start; term < end; term++) sum = matrix.add_term(sum, term, z);
    } else if (row - row_count < bound) {
        sum = fr_load(z + (row - row_count));
    }
    fr_store(out + row, sum);
}

// partials[u] = the sum over terms unit_starts[u] to unit_ends[u]; a warp for each unit.
template <typename index_t>
static ZK_INLINE void unit(const matrix_t<index_t>& matrix, const fr_t* z, const uint32_t* unit_starts,
                           const uint32_t* unit_ends, uint32_t units, fr_t* partials) {
    __shared__ fr_t shared[THREADS];
    const uint32_t lane = threadIdx.x % WARP, u = (blockIdx.x * THREADS + threadIdx.x) / WARP;
    fr_t sum = fr_t::zero();
    if (u < units) {
        const uint32_t end = unit_ends[u];
#pragma unroll 1
        for (uint32_t term = unit_starts[u] + lane; term < end; term += WARP) sum = matrix.add_term(sum, term, z);
    }
    shared[threadIdx.x] = sum;
    for (uint32_t step = WARP / 2; step > 0; step /= 2) {
        __syncwarp();
        if (lane < step) shared[threadIdx.x] = shared[threadIdx.x] + shared[threadIdx.x + step];
    }
    if (u < units && lane == 0) fr_store(partials + u, shared[threadIdx.x]);
}

#define R1CS_KERNELS(SUFFIX, INDEX)                                                                                        \
    extern "C" __global__ void r1cs_rows_##SUFFIX(const uint32_t* row_ends, const uint32_t* columns,                       \
                                                  const INDEX* coefficients, const fr_t* dictionary, const fr_t* z,        \
                                                  fr_t* out, uint32_t row_count, uint32_t bound, uint32_t domain,          \
                                                  uint32_t short_max) {                                                    \
        rows<INDEX>({row_ends, columns, coefficients, dictionary}, z, out, row_count, bound, domain, short_max);           \
    }                                                                                                                      \
    extern "C" __global__ void r1cs_unit_##SUFFIX(const uint32_t* columns, const INDEX* coefficients,                      \
                                                  const fr_t* dictionary, const fr_t* z, const uint32_t* unit_starts,      \
                                                  const uint32_t* unit_ends, uint32_t units, fr_t* partials) {             \
        unit<INDEX>({nullptr, columns, coefficients, dictionary}, z, unit_starts, unit_ends, units, partials);             \
    }

R1CS_KERNELS(u8, uint8_t)
R1CS_KERNELS(u16, uint16_t)
R1CS_KERNELS(u32, uint32_t)

// out[long_rows[i]] = the sum of its units, first_units[i] to first_units[i + 1].
extern "C" __global__ void r1cs_join(const fr_t* partials, const uint32_t* long_rows, const uint32_t* first_units,
                                     uint32_t count, fr_t* out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    fr_t sum = fr_t::zero();
    for (uint32_t u = first_units[i]; u < first_units[i + 1]; u++) sum = sum + fr_load(partials + u);
    fr_store(out + long_rows[i], sum);
}

// first = the least row whose product of a and b is not c, if there is one below what it was.
extern "C" __global__ void r1cs_first_broken(const fr_t* a, const fr_t* b, const fr_t* c, uint32_t rows, uint32_t* first) {
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const fr_t difference = fr_load(a + row) * fr_load(b + row) - fr_load(c + row);
    if (!difference.is_zero()) atomicMin(first, row);
}
