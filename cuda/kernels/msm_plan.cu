// Planning a multi-scalar multiplication: the nonzero signed digits of all scalars, as entries (point, bucket) sorted by
// bucket. Two counting sorts, first into bins of neighbouring buckets, then within each by a block; bins that hold far more
// than their share are sorted by all blocks. The order within a bucket is arbitrary.

#include "msm.cuh"

using namespace msm;

namespace {

constexpr uint32_t THREADS = 256;
constexpr uint32_t TILE_ROUNDS = 4;
constexpr uint32_t SORT_THREADS = 1024;
constexpr uint32_t SORT_UNROLL = 4;
// A bin is large from so many times the mean, and from so many entries.
constexpr uint32_t LARGE_FACTOR = 4;
constexpr uint32_t LARGE_FROM = 1 << 16;
// Lanes with the same counter from which one atomic for all of them pays.
constexpr int AGGREGATE_FROM = 4;

// The scalars: `head_len` of them dense, then packed ones. Canonical, four little-endian 64-bit words each.
struct Scalars {
    const uint4* head;
    uint64_t head_len;
    // of 64 packed scalars: which are elements, and the value bits of the others
    const ulonglong2* masks;
    // elements before each 64
    const uint32_t* ranks;
    const uint4* elements;
    // of all scalars
    uint64_t len;
    // the point of each scalar, NONE to leave it out; null: point i for scalar i
    const uint32_t* positions;
};

struct Digits {
    uint32_t word[8];
    uint32_t sign;
    uint32_t carry;

    // Reads scalar `index`; zero if there is none.
    ZK_INLINE Digits(const Scalars& scalars, uint64_t index) : sign(0), carry(0) {
        const uint4* source = nullptr;
        uint32_t small = 0;
        if (index < scalars.head_len) {
            source = scalars.head + 2 * index;
        } else if (index < scalars.len) {
            const uint64_t packed = index - scalars.head_len, group = packed / 64;
            const int bit = packed % 64;
            const ulonglong2 mask = scalars.masks[group];
            small = mask.y >> bit & 1;
            if (mask.x >> bit & 1)
                source = scalars.elements + 2 * (size_t)(scalars.ranks[group] + __popcll(mask.x & ((1ull << bit) - 1)));
        }
        const uint4 none = make_uint4(0, 0, 0, 0);
        const uint4 low = source ? source[0] : none, high = source ? source[1] : none;
        word[0] = low.x | small;
        word[1] = low.y;
        word[2] = low.z;
        word[3] = low.w;
        word[4] = high.x;
        word[5] = high.y;
        word[6] = high.z;
        word[7] = high.w;
        negate_if_large();
    }

    // s becomes r - s if s > (r - 1) / 2.
    ZK_INLINE void negate_if_large() {
        constexpr uint32_t r[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                                   0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
        uint32_t other[8];
        other[0] = ptx::sub_cc(r[0], word[0]);
#pragma unroll
        for (int i = 1; i < 7; i++) other[i] = ptx::subc_cc(r[i], word[i]);
        other[7] = ptx::subc(r[7], word[7]);
        // the smaller of both
        ptx::sub_cc(other[0], word[0]);
#pragma unroll
        for (int i = 1; i < 8; i++) ptx::subc_cc(other[i], word[i]);
        if (ptx::subc(0, 0)) {
            sign = NEGATIVE;
#pragma unroll
            for (int i = 0; i < 8; i++) word[i] = other[i];
        }
    }

    // The size of the next digit; its sign is `NEGATIVE` or 0.
    ZK_INLINE uint32_t next(uint32_t bits, uint32_t* digit_sign) {
        uint32_t digit = (word[0] & ((1u << bits) - 1)) + carry;
#pragma unroll
        for (int i = 0; i < 7; i++) word[i] = __funnelshift_r(word[i], word[i + 1], bits);
        word[7] >>= bits;
        carry = digit > 1u << (bits - 1);
        if (carry) digit = (1u << bits) - digit;
        *digit_sign = carry ? sign ^ NEGATIVE : sign;
        return digit;
    }
};

// Calls `visit(bucket, point, present)` for each digit of scalar `index`, in all lanes together.
template <class Visit> ZK_INLINE void each_digit(const Scalars& scalars, const Windows& windows, uint64_t index, Visit visit) {
    uint64_t position = index;
    if (scalars.positions) position = index < scalars.len ? scalars.positions[index] : NONE;
    const bool selected = position != NONE;
    Digits digits(scalars, index);
    uint32_t set = 0;
    for (uint32_t window = 0; window < windows.windows; window++) {
        uint32_t sign;
        const uint32_t digit = digits.next(windows.bits, &sign);
        visit((set << (windows.bits - 1)) + digit - 1, (uint32_t)position | sign, digit != 0 && selected);
        if (++set == windows.sets) {
            set = 0;
            position += windows.points;
        }
    }
}

// counters[key]++ in each present lane; returns what was there before. Where many lanes have the first one's key, those
// share one atomic: a key that most entries have does not serialise them.
ZK_INLINE uint32_t take(uint32_t* counters, uint32_t key, bool present) {
    const uint32_t lanes = __ballot_sync(ALL_LANES, present);
    if (lanes == 0) return 0;
    const int leader = __ffs(lanes) - 1;
    const uint32_t common = __shfl_sync(ALL_LANES, key, leader);
    const uint32_t same = __ballot_sync(ALL_LANES, present && key == common);
    if (__popc(same) < AGGREGATE_FROM) return present ? atomicAdd(counters + key, 1) : 0;
    const int lane = threadIdx.x % 32;
    uint32_t first = 0;
    if (lane == leader) first = atomicAdd(counters + common, __popc(same));
    first = __shfl_sync(ALL_LANES, first, leader);
    if (same >> lane & 1) return first + __popc(same & ((1u << lane) - 1));
    return present ? atomicAdd(counters + key, 1) : 0;
}

// Whether a bin is too much for one block: its share of all entries, or the number of its buckets.
ZK_INLINE bool is_large(uint32_t len, uint32_t total, const Windows& windows, uint32_t counters_max) {
    return len > 0 && (1u << windows.bin_shift > counters_max || len > max(total / BINS * LARGE_FACTOR, LARGE_FROM));
}

// Calls `visit(index of entry, present)` for the entries of all large bins, spread over the grid, in warps together.
template <class Visit>
ZK_INLINE void each_large_bin(const Windows& windows, const uint32_t* bin_starts, const uint32_t* bin_counts, uint32_t total,
                              uint32_t counters_max, Visit visit) {
    const bool mine_is_large = is_large(bin_counts[threadIdx.x], total, windows, counters_max);
    if (!__syncthreads_or(mine_is_large)) return;
    for (uint32_t bin = 0; bin < BINS; bin++) {
        const uint32_t start = bin_starts[bin], len = bin_counts[bin];
        if (!is_large(len, total, windows, counters_max)) continue;
        for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < len; base += (uint64_t)gridDim.x * THREADS) {
            const uint64_t i = base + threadIdx.x;
            visit((uint32_t)(start + i), i < len);
        }
    }
}

// Inclusive sum over the threads of a block, all of which call it.
ZK_INLINE uint32_t block_sum_inclusive(uint32_t value) {
    __shared__ uint32_t warp_sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, value, distance);
        if (lane >= distance) value += below;
    }
    if (lane == 31) warp_sums[warp] = value;
    __syncthreads();
    uint32_t before = 0;
    for (int other = 0; other < warp; other++) before += warp_sums[other];
    __syncthreads();
    return value + before;
}

}  // namespace

// bin_counts[bin] += the entries of scalars [first, first + len) that fall into the bin.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_count_bins(Scalars scalars, Windows windows, uint64_t first, uint64_t len, uint32_t* bin_counts) {
    __shared__ uint32_t counts[BINS];
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < len; base += (uint64_t)gridDim.x * THREADS) {
        const uint64_t offset = base + threadIdx.x;
        each_digit(scalars, windows, offset < len ? first + offset : scalars.len,
                   [&](uint32_t bucket, uint32_t, bool present) { take(counts, bucket >> windows.bin_shift, present); });
    }
    __syncthreads();
    if (counts[threadIdx.x]) atomicAdd(bin_counts + threadIdx.x, counts[threadIdx.x]);
}

// One block: the start of each bin, twice, and the number of all entries.
extern "C" __global__ void __launch_bounds__(BINS)
msm_scan_bins(const uint32_t* bin_counts, uint32_t* bin_starts, uint32_t* bin_cursors, uint32_t* total) {
    const uint32_t count = bin_counts[threadIdx.x];
    const uint32_t end = block_sum_inclusive(count);
    bin_starts[threadIdx.x] = bin_cursors[threadIdx.x] = end - count;
    if (threadIdx.x == BINS - 1) *total = end;
}

// Writes the entries of scalars [first, first + len) into their bins. Each tile takes its places in all bins at once.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_scatter_to_bins(Scalars scalars, Windows windows, uint64_t first, uint64_t len, uint32_t* bin_cursors, Entry* entries) {
    __shared__ uint32_t places[BINS];
    constexpr uint32_t TILE = THREADS * TILE_ROUNDS;
    for (uint64_t tile = (uint64_t)blockIdx.x * TILE; tile < len; tile += (uint64_t)gridDim.x * TILE) {
        const auto scalar = [&](uint32_t round) {
            const uint64_t offset = tile + round * THREADS + threadIdx.x;
            return offset < len ? first + offset : scalars.len;
        };
        places[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t round = 0; round < TILE_ROUNDS; round++)
            each_digit(scalars, windows, scalar(round), [&](uint32_t bucket, uint32_t, bool present) {
                take(places, bucket >> windows.bin_shift, present);
            });
        __syncthreads();
        const uint32_t count = places[threadIdx.x];
        if (count) places[threadIdx.x] = atomicAdd(bin_cursors + threadIdx.x, count);
        __syncthreads();
        for (uint32_t round = 0; round < TILE_ROUNDS; round++)
            each_digit(scalars, windows, scalar(round), [&](uint32_t bucket, uint32_t point, bool present) {
                const uint32_t place = take(places, bucket >> windows.bin_shift, present);
                if (present) entries[place] = Entry{point, bucket};
            });
        __syncthreads();
    }
}

// Sorts the entries of each bin but the large ones by bucket: a block for a bin, with counters in shared memory.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
msm_sort_bins(Windows windows, const Entry* entries, const uint32_t* bin_starts, const uint32_t* bin_counts,
              const uint32_t* total, uint32_t counters_max, Entry* sorted) {
    extern __shared__ uint32_t counters[];
    __shared__ uint32_t start;
    const uint32_t len = bin_counts[blockIdx.x], counters_len = 1u << windows.bin_shift;
    if (len == 0 || is_large(len, *total, windows, counters_max)) return;
    const uint32_t first_bucket = blockIdx.x << windows.bin_shift;
    for (uint32_t i = threadIdx.x; i < counters_len; i += SORT_THREADS) counters[i] = 0;
    if (threadIdx.x == 0) start = bin_starts[blockIdx.x];
    __syncthreads();
    entries += start;
    for (uint32_t base = 0; base < len; base += SORT_THREADS * SORT_UNROLL) {
#pragma unroll
        for (uint32_t k = 0; k < SORT_UNROLL; k++) {
            const uint32_t i = base + k * SORT_THREADS + threadIdx.x;
            if (i < len) atomicAdd(counters + (entries[i].bucket - first_bucket), 1);
        }
    }
    __syncthreads();
    // Counts become places.
    for (uint32_t base = 0; base < counters_len; base += SORT_THREADS) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t count = i < counters_len ? counters[i] : 0;
        const uint32_t sum = block_sum_inclusive(count);
        if (i < counters_len) counters[i] = start + sum - count;
        __syncthreads();
        if (threadIdx.x == SORT_THREADS - 1) start += sum;
        __syncthreads();
    }
    for (uint32_t base = 0; base < len; base += SORT_THREADS * SORT_UNROLL) {
        Entry entry[SORT_UNROLL];
#pragma unroll
        for (uint32_t k = 0; k < SORT_UNROLL; k++) {
            const uint32_t i = base + k * SORT_THREADS + threadIdx.x;
            if (i < len) entry[k] = entries[i];
        }
#pragma unroll
        for (uint32_t k = 0; k < SORT_UNROLL; k++) {
            const uint32_t i = base + k * SORT_THREADS + threadIdx.x;
            if (i < len) sorted[atomicAdd(counters + (entry[k].bucket - first_bucket), 1)] = entry[k];
        }
    }
}

// Large bins are sorted by all blocks, with counters in global memory: bucket_counts[bucket] += its entries.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_count_buckets(Windows windows, const Entry* entries, const uint32_t* bin_starts, const uint32_t* bin_counts,
                  const uint32_t* total, uint32_t counters_max, uint32_t* bucket_counts) {
    each_large_bin(windows, bin_starts, bin_counts, *total, counters_max, [&](uint32_t i, bool present) {
        take(bucket_counts, present ? entries[i].bucket : 0, present);
    });
}

// A block for each large bin: the counts of its buckets become the places of their first entries.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
msm_scan_buckets(Windows windows, const uint32_t* bin_starts, const uint32_t* bin_counts, const uint32_t* total,
                 uint32_t counters_max, uint32_t* bucket_counts) {
    if (!is_large(bin_counts[blockIdx.x], *total, windows, counters_max)) return;
    const uint32_t buckets = windows.sets << (windows.bits - 1);
    const uint32_t begin = blockIdx.x << windows.bin_shift;
    const uint32_t end = min(begin + (1u << windows.bin_shift), buckets);
    __shared__ uint32_t start;
    if (threadIdx.x == 0) start = bin_starts[blockIdx.x];
    __syncthreads();
    for (uint32_t base = begin; base < end; base += SORT_THREADS) {
        const uint32_t bucket = base + threadIdx.x;
        const uint32_t count = bucket < end ? bucket_counts[bucket] : 0;
        const uint32_t sum = block_sum_inclusive(count);
        if (bucket < end) bucket_counts[bucket] = start + sum - count;
        __syncthreads();
        if (threadIdx.x == SORT_THREADS - 1) start += sum;
        __syncthreads();
    }
}

// Sorts the entries of large bins; `cursors` are the buckets' starts and become their ends.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_scatter_to_buckets(Windows windows, const Entry* entries, const uint32_t* bin_starts, const uint32_t* bin_counts,
                       const uint32_t* total, uint32_t counters_max, uint32_t* cursors, Entry* sorted) {
    each_large_bin(windows, bin_starts, bin_counts, *total, counters_max, [&](uint32_t i, bool present) {
        const Entry entry = present ? entries[i] : Entry{0, 0};
        const uint32_t place = take(cursors, entry.bucket, present);
        if (present) sorted[place] = entry;
    });
}
