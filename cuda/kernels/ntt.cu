// Number-theoretic transforms over Fr, any domain of 2^0 to 2^28 points.
//
// A transform of n points is cut into passes; each pass transforms a few consecutive bits of the index and multiplies by
// the factors between it and the next (Bailey's decomposition). A block owns a tile of 2^k rows, the bits it transforms, and
// 2^c columns, so that it reads at least 128 consecutive bytes; a thread owns four elements in registers, does two levels
// (one radix-4 butterfly), and exchanges through shared memory.
//
// Decimation in frequency takes natural order to bit-reversed order, high bits first; decimation in time takes it back,
// low bits first. Neither permutes. The inverse uses conjugate roots, without 1/n, which is one of the scalings.
#include "fr.cuh"

constexpr uint32_t LOG_INNER = 10;  // roots within a pass come from a table of 2^LOG_INNER
constexpr uint32_t BLOCK_THREADS_MAX = 256;

// One pass: which bits, which roots. Mirrored by `Pass` in ntt.rs.
struct ntt_pass_t {
    uint32_t log_n;        // size of the whole transform
    uint32_t low;          // the pass transforms index bits low .. low + k
    uint32_t k;            // 2 to LOG_INNER
    uint32_t log_columns;  // c
    uint32_t log_roots;    // roots[i] = w^i for i below half the order 2^log_roots of w
    uint32_t inverse;      // conjugate roots
};

// Factors by the natural index i of a coefficient: low[i mod 2^log_low] * high[i / 2^log_low], or nothing if low is null,
// or the low part alone if high is null. Mirrored by `Factors` in ntt.rs.
struct ntt_factors_t {
    const fr_t* low;
    const fr_t* high;
    uint32_t log_low;
    uint32_t reversed;  // positions hold bit-reversed indices: look up at the reversed position
};

static ZK_INLINE uint32_t reverse_bits(uint32_t value, uint32_t bits) { return bits == 0 ? 0 : __brev(value) >> (32 - bits); }

static ZK_INLINE void scale(fr_t& x, const ntt_factors_t& factors, uint32_t position, uint32_t log_n) {
    if (factors.low == nullptr) return;
    const uint32_t i = factors.reversed ? reverse_bits(position, log_n) : position;
    const uint32_t mask = (1u << factors.log_low) - 1;
    x = fr_load(factors.low + (i & mask)) * x;
    if (factors.high != nullptr) x = fr_load(factors.high + (i >> factors.log_low)) * x;
}

// A tile as one thread sees it.
struct tile_t {
    uint32_t base;        // global index of row 0, column 0
    uint32_t column;      // of this thread
    uint32_t rest;        // which four rows: k - 2 bits
    uint32_t row_shift;   // log2 of the distance of rows in global memory
    uint32_t column_step; // log2 of the distance of columns in global memory
    uint32_t row_local, column_local;  // the same in shared memory
    uint32_t lanes;       // log2 of consecutive threads that share a value of `rest`

    ZK_INLINE tile_t(const ntt_pass_t& pass, uint32_t block, uint32_t thread) {
        const uint32_t k = pass.k, c = pass.log_columns;
        if (pass.low == 0) {  // rows are consecutive, columns are whole blocks of them
            base = block << (k + c);
            row_shift = row_local = 0;
            column_step = column_local = k;
            rest = thread & ((1u << (k - 2)) - 1);
            column = thread >> (k - 2);
            lanes = 0;
        } else {  // columns are consecutive
            const uint32_t low_blocks = pass.low - c;
            const uint32_t below = block & ((1u << low_blocks) - 1);
            base = ((block >> low_blocks) << (pass.low + k)) | (below << c);
            row_shift = pass.low;
            row_local = c;
            column_step = column_local = 0;
            column = thread & ((1u << c) - 1);
            rest = thread >> c;
            lanes = c;
        }
    }

    ZK_INLINE uint32_t global(uint32_t row) const { return base + (row << row_shift) + (column << column_step); }

    // Row i of this thread's four at the step on sub-blocks of 2^m rows.
    ZK_INLINE uint32_t row(uint32_t i, uint32_t m) const {
        if (m < 2) return (rest << 2) | i;
        const uint32_t stride = m - 2;
        return ((rest >> stride) << m) | (i << stride) | (rest & ((1u << stride) - 1));
    }

    // Place of a row in shared memory, in 16-byte words, such that the eight threads of a quarter warp meet eight
    // different groups of banks at every step.
    ZK_INLINE uint32_t place(uint32_t row) const {
        const uint32_t at = (row << row_local) | (column << column_local);
        return at ^ ((at >> 3) & 3) ^ ((at >> 2) & 4);
    }
};

// Shared memory holds the tile as two planes of 16-byte halves.
static ZK_INLINE void put(uint4* tile, uint32_t size, uint32_t place, const fr_t& x) {
    tile[place] = reinterpret_cast<const uint4*>(x.limb)[0];
    tile[size + place] = reinterpret_cast<const uint4*>(x.limb)[1];
}

static ZK_INLINE fr_t get(const uint4* tile, uint32_t size, uint32_t place) {
    fr_t x;
    reinterpret_cast<uint4*>(x.limb)[0] = tile[place];
    reinterpret_cast<uint4*>(x.limb)[1] = tile[size + place];
    return x;
}

// Moves this thread's elements from the rows of step `from` to those of step `to`. Rows of a step are only ever exchanged
// within sub-blocks of 2^m rows, m the larger step; when those belong to one warp, the block need not wait.
static ZK_INLINE void exchange(fr_t x[4], const tile_t& tile, uint4* memory, uint32_t size, uint32_t from, uint32_t to) {
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) put(memory, size, tile.place(tile.row(i, from)), x[i]);
    const uint32_t log_threads = (from > to ? from : to) - 2 + tile.lanes;
    if (log_threads <= 5 && blockDim.x >= 32) __syncwarp();
    else __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) x[i] = get(memory, size, tile.place(tile.row(i, to)));
}

static ZK_INLINE fr_t inner_root(const fr_t* inner, uint32_t exponent, uint32_t inverse) {
    constexpr uint32_t mask = (1u << LOG_INNER) - 1;
    return fr_load(inner + ((inverse ? 0u - exponent : exponent) & mask));
}

// The levels m and m - 1 of decimation in frequency (m >= 2), or level 1 of two pairs (m = 1).
static ZK_INLINE void butterfly_dif(fr_t x[4], uint32_t q, uint32_t m, const fr_t* inner, uint32_t inverse) {
    if (m == 1) {
        const fr_t a = x[0] - x[1], b = x[2] - x[3];
        x[0] = x[0] + x[1], x[2] = x[2] + x[3];
        x[1] = a, x[3] = b;
        return;
    }
    const fr_t s = x[0] + x[2], t = x[1] + x[3];
    const fr_t u = x[0] - x[2];
    const fr_t v = inner_root(inner, 1u << (LOG_INNER - 2), inverse) * fr_t::sub_lazy(x[1], x[3]);
    x[0] = s + t;
    if (m == 2) {
        x[1] = s - t, x[2] = u + v, x[3] = u - v;
        return;
    }
    const uint32_t exponent = q << (LOG_INNER - m);
    x[1] = inner_root(inner, 2 * exponent, inverse) * fr_t::sub_lazy(s, t);
    x[2] = inner_root(inner, exponent, inverse) * fr_t::add_lazy(u, v);
    x[3] = inner_root(inner, 3 * exponent, inverse) * fr_t::sub_lazy(u, v);
}

// The inverse network: levels m - 1 and m of decimation in time, or level 1 of two pairs.
static ZK_INLINE void butterfly_dit(fr_t x[4], uint32_t q, uint32_t m, const fr_t* inner, uint32_t inverse) {
    if (m == 1) {
        butterfly_dif(x, q, m, inner, inverse);
        return;
    }
    if (m > 2) {
        const uint32_t exponent = q << (LOG_INNER - m);
        x[1] = inner_root(inner, 2 * exponent, inverse) * x[1];
        x[2] = inner_root(inner, exponent, inverse) * x[2];
        x[3] = inner_root(inner, 3 * exponent, inverse) * x[3];
    }
    const fr_t s = x[0] + x[1], t = x[0] - x[1], u = x[2] + x[3];
    const fr_t v = inner_root(inner, 1u << (LOG_INNER - 2), inverse) * fr_t::sub_lazy(x[2], x[3]);
    x[0] = s + u, x[2] = s - u;
    x[1] = t + v, x[3] = t - v;
}

// All levels of a tile; the elements come in on the rows of step k and leave on those of step 2 or 1.
static ZK_INLINE void transform_dif(fr_t x[4], const tile_t& tile, uint4* memory, uint32_t size, const ntt_pass_t& pass,
                                    uint32_t inverse, const fr_t* inner) {
    uint32_t m = pass.k;
#pragma unroll 1
    for (;;) {
        butterfly_dif(x, m < 2 ? 0 : tile.rest & ((1u << (m - 2)) - 1), m, inner, inverse);
        if (m <= 2) break;
        exchange(x, tile, memory, size, m, m - 2);
        m -= 2;
    }
}

// The same backwards: from the rows of step 2 or 1 to those of step k.
static ZK_INLINE void transform_dit(fr_t x[4], const tile_t& tile, uint4* memory, uint32_t size, const ntt_pass_t& pass,
                                    uint32_t inverse, const fr_t* inner) {
    uint32_t m = 2 - (pass.k & 1);
#pragma unroll 1
    for (;;) {
        butterfly_dit(x, m < 2 ? 0 : tile.rest & ((1u << (m - 2)) - 1), m, inner, inverse);
        if (m == pass.k) break;
        exchange(x, tile, memory, size, m, m + 2);
        m += 2;
    }
}

// The factor between this pass and its neighbour below: w^(f j), f the frequency in `row` (its bits reversed), j the
// index bits below the pass.
static ZK_INLINE void twist(fr_t& x, const tile_t& tile, uint32_t row, const ntt_pass_t& pass, const fr_t* roots) {
    const uint32_t below = (tile.base & ((1u << pass.low) - 1)) + tile.column;
    uint32_t exponent = (reverse_bits(row, pass.k) * below) << (pass.log_roots - pass.low - pass.k);
    if (pass.inverse) exponent = 0u - exponent;
    const uint32_t half = 1u << (pass.log_roots - 1);
    const fr_t product = fr_load(roots + (exponent & (half - 1))) * x;
    x = exponent & half ? product.negated() : product;
}

extern __shared__ uint4 tile_memory[];

// Decimation in frequency; `before` scales what is read, `after` what is written.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS_MAX, 3)
ntt_dif(fr_t* data, const fr_t* roots, const fr_t* inner, ntt_pass_t pass, ntt_factors_t before, ntt_factors_t after) {
    data += size_t(blockIdx.y) << pass.log_n;
    const tile_t tile(pass, blockIdx.x, threadIdx.x);
    const uint32_t size = 4 * blockDim.x;
    fr_t x[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = tile.global(tile.row(i, pass.k));
        x[i] = fr_load(data + at);
        scale(x[i], before, at, pass.log_n);
    }
    transform_dif(x, tile, tile_memory, size, pass, pass.inverse, inner);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = tile.row(i, 2 - (pass.k & 1)), at = tile.global(row);
        if (pass.low != 0) twist(x[i], tile, row, pass, roots);
        scale(x[i], after, at, pass.log_n);
        fr_store(data + at, x[i]);
    }
}

// Decimation in time. With a multiplicand the result is finished: data[i] = data[i] * multiplicand[i] * constant.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS_MAX, 3)
ntt_dit(fr_t* data, const fr_t* roots, const fr_t* inner, ntt_pass_t pass, ntt_factors_t before, ntt_factors_t after,
        const fr_t* multiplicand, fr_t constant) {
    data += size_t(blockIdx.y) << pass.log_n;
    const tile_t tile(pass, blockIdx.x, threadIdx.x);
    const uint32_t size = 4 * blockDim.x;
    fr_t x[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = tile.row(i, 2 - (pass.k & 1)), at = tile.global(row);
        x[i] = fr_load(data + at);
        scale(x[i], before, at, pass.log_n);
        if (pass.low != 0) twist(x[i], tile, row, pass, roots);
    }
    transform_dit(x, tile, tile_memory, size, pass, pass.inverse, inner);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = tile.global(tile.row(i, pass.k));
        scale(x[i], after, at, pass.log_n);
        if (multiplicand != nullptr) x[i] = constant * (fr_load(multiplicand + at) * x[i]);
        fr_store(data + at, x[i]);
    }
}

// The last pass of an inverse transform to bit-reversed order, a scaling, and the first pass of a forward transform back:
// both work on the same consecutive elements, so the vector crosses memory once instead of twice.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS_MAX, 3)
ntt_inverse_scale_forward(fr_t* data, const fr_t* inner, ntt_pass_t pass, ntt_factors_t middle) {
    data += size_t(blockIdx.y) << pass.log_n;
    const tile_t tile(pass, blockIdx.x, threadIdx.x);
    const uint32_t size = 4 * blockDim.x;
    fr_t x[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) x[i] = fr_load(data + tile.global(tile.row(i, pass.k)));
    transform_dif(x, tile, tile_memory, size, pass, 1, inner);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        scale(x[i], middle, tile.global(tile.row(i, 2 - (pass.k & 1))), pass.log_n);
    }
    transform_dit(x, tile, tile_memory, size, pass, 0, inner);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) fr_store(data + tile.global(tile.row(i, pass.k)), x[i]);
}

// Transforms of one or two points, which have no tile; one thread for each.
extern "C" __global__ void ntt_tiny(fr_t* data, uint32_t log_n, uint32_t count, ntt_factors_t before, ntt_factors_t after) {
    const uint32_t which = blockIdx.x * blockDim.x + threadIdx.x;
    if (which >= count) return;
    data += size_t(which) << log_n;
    fr_t x = fr_load(data);
    scale(x, before, 0, log_n);
    if (log_n == 1) {
        fr_t y = fr_load(data + 1);
        scale(y, before, 1, log_n);
        fr_t difference = x - y;
        scale(difference, after, 1, log_n);
        fr_store(data + 1, difference);
        x = x + y;
    }
    scale(x, after, 0, log_n);
    fr_store(data, x);
}

// Swaps each element with the one at the reversed index.
extern "C" __global__ void ntt_reverse(fr_t* data, uint32_t log_n) {
    data += size_t(blockIdx.y) << log_n;
    const uint32_t n = 1u << log_n;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const uint32_t j = reverse_bits(i, log_n);
        if (i < j) {
            const fr_t x = fr_load(data + i), y = fr_load(data + j);
            fr_store(data + i, y);
            fr_store(data + j, x);
        }
    }
}

// out[i] = first * base^i for i < n; with `reversed_bits` not zero, at the position of i with so many bits reversed.
extern "C" __global__ void ntt_powers(fr_t* out, uint64_t n, fr_t first, fr_t base, uint32_t reversed_bits) {
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x, start = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (start >= n) return;
    fr_t value = first * fr_power(base, start);
    const fr_t step = fr_power(base, stride);
    for (uint64_t i = start; i < n; i += stride) {
        fr_store(out + (reversed_bits ? reverse_bits(uint32_t(i), reversed_bits) : i), value);
        value = value * step;
    }
}

// data[i] = data[i] * multiplicand[i] * constant.
extern "C" __global__ void ntt_multiply(fr_t* data, const fr_t* multiplicand, fr_t constant, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) fr_store(data + i, constant * (fr_load(multiplicand + i) * fr_load(data + i)));
}
