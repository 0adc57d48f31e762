// The packed assignment on the device: aux variable i is bit i mod 64 of group i / 64. Each group has a word `full` (the
// variable is one of the dense elements) and a word `one` (the value bits of the others).
#include "fr.cuh"

constexpr uint32_t SCAN_THREADS = 256;
constexpr uint32_t GROUPS_PER_THREAD = 4;
constexpr uint32_t GROUPS_PER_BLOCK = SCAN_THREADS * GROUPS_PER_THREAD;  // mirrored in expand.rs

static ZK_INLINE uint32_t full_count(const uint64_t* masks, uint32_t group, uint32_t groups) {
    return group < groups ? __popcll(masks[2 * group]) : 0;
}

// Sum over the block; the result is in every thread.
static ZK_INLINE uint32_t block_sum(uint32_t value, uint32_t* shared) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (uint32_t step = SCAN_THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    const uint32_t sum = shared[0];
    __syncthreads();
    return sum;
}

// totals[b] = elements of the groups of block b.
extern "C" __global__ void expand_count(const uint64_t* masks, uint32_t groups, uint32_t* totals) {
    __shared__ uint32_t shared[SCAN_THREADS];
    const uint32_t first = blockIdx.x * GROUPS_PER_BLOCK + threadIdx.x * GROUPS_PER_THREAD;
    uint32_t count = 0;
    for (uint32_t i = 0; i < GROUPS_PER_THREAD; i++) count += full_count(masks, first + i, groups);
    const uint32_t sum = block_sum(count, shared);
    if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// ranks[g] = elements of the groups before g.
extern "C" __global__ void expand_rank(const uint64_t* masks, uint32_t groups, const uint32_t* totals, uint32_t* ranks) {
    __shared__ uint32_t shared[SCAN_THREADS];
    // There are few blocks: each sums the totals of those before it.
    uint32_t before = 0;
    for (uint32_t b = threadIdx.x; b < blockIdx.x; b += SCAN_THREADS) before += totals[b];
    before = block_sum(before, shared);

    const uint32_t first = blockIdx.x * GROUPS_PER_BLOCK + threadIdx.x * GROUPS_PER_THREAD;
    uint32_t count = 0;
    for (uint32_t i = 0; i < GROUPS_PER_THREAD; i++) count += full_count(masks, first + i, groups);
    shared[threadIdx.x] = count;
    __syncthreads();
    for (uint32_t step = 1; step < SCAN_THREADS; step *= 2) {  // inclusive scan
        const uint32_t add = threadIdx.x >= step ? shared[threadIdx.x - step] : 0;
        __syncthreads();
        shared[threadIdx.x] += add;
        __syncthreads();
    }
    uint32_t rank = before + shared[threadIdx.x] - count;
    for (uint32_t i = 0; i < GROUPS_PER_THREAD && first + i < groups; i++) {
        ranks[first + i] = rank;
        rank += full_count(masks, first + i, groups);
    }
}

// Both forms of elements that came in one: Montgomery for products, canonical for digits.
extern "C" __global__ void expand_convert(const fr_t* elements, uint32_t count, uint32_t from_montgomery, fr_t* montgomery,
                                          fr_t* canonical) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const fr_t x = fr_load(elements + i);
    fr_store(montgomery + i, from_montgomery ? x : x * fr_t::r_squared());
    fr_store(canonical + i, from_montgomery ? x * fr_t::plain_one() : x);
}

// z[i] = aux variable i, Montgomery.
extern "C" __global__ void expand_aux(const uint64_t* masks, const uint32_t* ranks, const fr_t* elements, uint32_t count,
                                      fr_t* z) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const uint32_t group = i / 64, bit = i % 64;
    const uint64_t full = masks[2 * group];
    if ((full >> bit) & 1) {
        fr_store(z + i, fr_load(elements + ranks[group] + __popcll(full & ((uint64_t(1) << bit) - 1))));
    } else {
        fr_store(z + i, (masks[2 * group + 1] >> bit) & 1 ? fr_t::one() : fr_t::zero());
    }
}

// For each variable the index of its base among `len` bases from `first` on, all ones if it has none there. Without
// `positions` variable i has base i.
extern "C" __global__ void expand_positions(const uint32_t* positions, uint32_t count, uint32_t first, uint32_t len,
                                            uint32_t* out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const uint32_t position = positions == nullptr ? i : positions[i];
    out[i] = position != 0xffffffff && position >= first && position - first < len ? position - first : 0xffffffff;
}
