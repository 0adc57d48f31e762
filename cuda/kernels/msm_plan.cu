// Planning a multi-scalar multiplication: the nonzero signed digits of all scalars, as entries (point, bucket) sorted by
// bucket. A sort by counting in three steps: into coarse bins of neighbouring buckets, into fine bins, and by bucket. Each
// step gathers what goes to one place in shared memory, because scattered writes are what sorting costs. All blocks get
// equal shares of the first two steps; fine bins that do not fit a block's shared memory are sorted by all blocks. The
// order within a bucket is arbitrary.

#include "msm.cuh"

using namespace msm;

namespace {

constexpr uint32_t THREADS = 512;
constexpr uint32_t FINE_THREADS = 1024;
constexpr uint32_t FINE_BINS_PER_THREAD = FINE_BINS / FINE_THREADS;
// Entries of a tile that one block sorts into fine bins.
constexpr uint32_t FINE_TILE = 8 * FINE_THREADS;
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
    uint32_t word[9];
    uint32_t sign;
    uint32_t carry;

    // Reads scalar `index`; zero if there is none.
    ZK_INLINE Digits(const Scalars& scalars, const Windows& windows, uint64_t index) : sign(0), carry(0) {
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
        word[8] = 0;
        negate_if_large();
        spread_top_digit(windows, index);
    }

    // The top window is wider than what a scalar has left for it, so that its digits would crowd in few buckets. Scalars
    // that reach it get a multiple of r added: all multiples are used equally often, and fill the window.
    ZK_INLINE void spread_top_digit(const Windows& windows, uint64_t index) {
        const uint32_t top_bit = windows.bits * (windows.windows - 1);
        if (windows.spread <= 1 || top_bit < 224 || top_bit >= 256 || word[7] >> (top_bit - 224) == 0) return;
        const uint32_t factor = (uint32_t)index % windows.spread;
        uint64_t sum = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            sum += (uint64_t)factor * order(i) + word[i];
            word[i] = (uint32_t)sum;
            sum >>= 32;
        }
        word[8] = (uint32_t)sum;
    }

    // r
    static ZK_INLINE uint32_t order(int i) {
        constexpr uint32_t words[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                                       0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
        return words[i];
    }

    // s becomes r - s if s > (r - 1) / 2.
    ZK_INLINE void negate_if_large() {
        uint32_t other[8];
        other[0] = ptx::sub_cc(order(0), word[0]);
#pragma unroll
        for (int i = 1; i < 7; i++) other[i] = ptx::subc_cc(order(i), word[i]);
        other[7] = ptx::subc(order(7), word[7]);
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
        for (int i = 0; i < 8; i++) word[i] = __funnelshift_r(word[i], word[i + 1], bits);
        word[8] >>= bits;
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
    Digits digits(scalars, windows, index);
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

// counts[i] become start + the sum of those before it. A whole block calls it.
ZK_INLINE void scan_counts(uint32_t* counts, uint32_t len, uint32_t start) {
    __shared__ uint32_t next;
    for (uint32_t base = 0; base < len; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const uint32_t count = i < len ? counts[i] : 0;
        const uint32_t sum = block_sum_inclusive(count);
        if (i < len) counts[i] = start + sum - count;
        if (threadIdx.x == blockDim.x - 1) next = start + sum;
        __syncthreads();
        start = next;
        __syncthreads();
    }
}

}  // namespace

// fine_counts[bin] += the entries of scalars [first, first + len) that fall into the fine bin.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_count_digits(Scalars scalars, Windows windows, uint64_t first, uint64_t len, uint32_t* fine_counts) {
    extern __shared__ uint32_t counts[];
    for (uint32_t bin = threadIdx.x; bin < FINE_BINS; bin += THREADS) counts[bin] = 0;
    __syncthreads();
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < len; base += (uint64_t)gridDim.x * THREADS) {
        const uint64_t offset = base + threadIdx.x;
        each_digit(scalars, windows, offset < len ? first + offset : scalars.len,
                   [&](uint32_t bucket, uint32_t, bool present) { take(counts, bucket >> windows.fine_shift, present); });
    }
    __syncthreads();
    for (uint32_t bin = threadIdx.x; bin < FINE_BINS; bin += THREADS)
        if (counts[bin]) atomicAdd(fine_counts + bin, counts[bin]);
}

// One block: the starts of all bins, and the number of all entries.
extern "C" __global__ void __launch_bounds__(FINE_THREADS)
msm_scan_bins(const uint32_t* fine_counts, uint32_t* fine_starts, uint32_t* fine_cursors, uint32_t* coarse_cursors,
              uint32_t* total) {
    for (uint32_t bin = threadIdx.x; bin < FINE_BINS; bin += FINE_THREADS) fine_starts[bin] = fine_counts[bin];
    __syncthreads();
    scan_counts(fine_starts, FINE_BINS, 0);
    for (uint32_t bin = threadIdx.x; bin < FINE_BINS; bin += FINE_THREADS) {
        fine_cursors[bin] = fine_starts[bin];
        if (bin % FINE_PER_COARSE == 0) coarse_cursors[bin / FINE_PER_COARSE] = fine_starts[bin];
    }
    if (threadIdx.x == 0) *total = fine_starts[FINE_BINS - 1] + fine_counts[FINE_BINS - 1];
}

// Writes the entries of scalars [first, first + len) into their coarse bins. Shared memory holds the entries of a tile of
// rounds * THREADS scalars.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_scatter_to_coarse(Scalars scalars, Windows windows, uint64_t first, uint64_t len, uint32_t rounds,
                      uint32_t* coarse_cursors, Entry* out) {
    extern __shared__ Entry gathered[];
    __shared__ uint32_t cursors[COARSE_BINS], offsets[COARSE_BINS], gathered_len;
    const uint32_t tile_len = rounds * THREADS, bin = threadIdx.x;
    const auto coarse = [&](uint32_t bucket) { return (bucket >> windows.fine_shift) / FINE_PER_COARSE; };
    for (uint64_t tile = (uint64_t)blockIdx.x * tile_len; tile < len; tile += (uint64_t)gridDim.x * tile_len) {
        const auto scalar = [&](uint32_t round) {
            const uint64_t offset = tile + round * THREADS + threadIdx.x;
            return offset < len ? first + offset : scalars.len;
        };
        if (bin < COARSE_BINS) cursors[bin] = 0;
        __syncthreads();
        for (uint32_t round = 0; round < rounds; round++)
            each_digit(scalars, windows, scalar(round),
                       [&](uint32_t bucket, uint32_t, bool present) { take(cursors, coarse(bucket), present); });
        __syncthreads();
        const uint32_t count = bin < COARSE_BINS ? cursors[bin] : 0;
        const uint32_t end = block_sum_inclusive(count), start = end - count;
        if (bin < COARSE_BINS) {
            cursors[bin] = start;
            // From a place among the gathered to its place in the bin.
            offsets[bin] = (count ? atomicAdd(coarse_cursors + bin, count) : 0) - start;
        }
        if (bin == COARSE_BINS - 1) gathered_len = end;
        __syncthreads();
        for (uint32_t round = 0; round < rounds; round++)
            each_digit(scalars, windows, scalar(round), [&](uint32_t bucket, uint32_t point, bool present) {
                const uint32_t place = take(cursors, coarse(bucket), present);
                if (present) gathered[place] = Entry{point, bucket};
            });
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < gathered_len; i += THREADS) {
            const Entry entry = gathered[i];
            out[offsets[coarse(entry.bucket)] + i] = entry;
        }
        __syncthreads();
    }
}

// Writes all entries into their fine bins, tile by tile. A tile lies in few coarse bins, and looks at their fine bins only.
extern "C" __global__ void __launch_bounds__(FINE_THREADS)
msm_scatter_to_fine(Windows windows, const Entry* entries, const uint32_t* total, uint32_t* fine_cursors, Entry* out) {
    extern __shared__ uint32_t shared[];
    uint32_t* bins = shared;
    uint32_t* places = bins + FINE_BINS;
    Entry* gathered = reinterpret_cast<Entry*>(places + FINE_TILE);
    constexpr uint32_t EACH = FINE_TILE / FINE_THREADS;
    const auto fine = [&](uint32_t bucket) { return bucket >> windows.fine_shift; };
    const uint32_t len = *total;
    for (uint64_t tile = (uint64_t)blockIdx.x * FINE_TILE; tile < len; tile += (uint64_t)gridDim.x * FINE_TILE) {
        const uint32_t tile_len = min((uint64_t)FINE_TILE, len - tile);
        const uint32_t first_bin = fine(entries[tile].bucket) / FINE_PER_COARSE * FINE_PER_COARSE;
        const uint32_t end_bin = (fine(entries[tile + tile_len - 1].bucket) / FINE_PER_COARSE + 1) * FINE_PER_COARSE;
        for (uint32_t bin = first_bin + threadIdx.x; bin < end_bin; bin += FINE_THREADS) bins[bin] = 0;
        __syncthreads();
        Entry entry[EACH];
        uint32_t rank[EACH], place[EACH], count[FINE_BINS_PER_THREAD];
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint32_t i = k * FINE_THREADS + threadIdx.x;
            entry[k] = i < tile_len ? entries[tile + i] : Entry{0, 0};
        }
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++)
            rank[k] = take(bins, fine(entry[k].bucket), k * FINE_THREADS + threadIdx.x < tile_len);
        __syncthreads();
#pragma unroll
        for (uint32_t j = 0; j < FINE_BINS_PER_THREAD; j++) {
            const uint32_t bin = first_bin + j * FINE_THREADS + threadIdx.x;
            count[j] = bin < end_bin ? bins[bin] : 0;
        }
        __syncthreads();
        scan_counts(bins + first_bin, end_bin - first_bin, 0);
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++)
            if (k * FINE_THREADS + threadIdx.x < tile_len) place[k] = bins[fine(entry[k].bucket)] + rank[k];
        __syncthreads();
        // From here a bin is where this tile's entries begin in the output.
#pragma unroll
        for (uint32_t j = 0; j < FINE_BINS_PER_THREAD; j++) {
            const uint32_t bin = first_bin + j * FINE_THREADS + threadIdx.x;
            if (count[j]) bins[bin] = atomicAdd(fine_cursors + bin, count[j]);
        }
        __syncthreads();
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            if (k * FINE_THREADS + threadIdx.x < tile_len) {
                gathered[place[k]] = entry[k];
                places[place[k]] = bins[fine(entry[k].bucket)] + rank[k];
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < tile_len; i += FINE_THREADS) out[places[i]] = gathered[i];
        __syncthreads();
    }
}

// A block for each fine bin of at most `len_max` entries: sorts them by bucket.
extern "C" __global__ void __launch_bounds__(FINE_THREADS)
msm_sort_fine(Windows windows, const Entry* entries, const uint32_t* fine_starts, const uint32_t* fine_counts,
              uint32_t len_max, Entry* out) {
    extern __shared__ uint32_t shared[];
    const uint32_t len = fine_counts[blockIdx.x], start = fine_starts[blockIdx.x];
    if (len == 0 || len > len_max) return;
    const uint32_t buckets = 1u << windows.fine_shift, first_bucket = blockIdx.x << windows.fine_shift;
    Entry* gathered = reinterpret_cast<Entry*>(shared);
    uint32_t* cursors = shared + 2 * len_max;
    for (uint32_t bucket = threadIdx.x; bucket < buckets; bucket += blockDim.x) cursors[bucket] = 0;
    __syncthreads();
    entries += start;
    for (uint32_t i = threadIdx.x; i < len; i += blockDim.x) atomicAdd(cursors + (entries[i].bucket - first_bucket), 1);
    __syncthreads();
    scan_counts(cursors, buckets, 0);
    for (uint32_t i = threadIdx.x; i < len; i += blockDim.x) {
        const Entry entry = entries[i];
        gathered[atomicAdd(cursors + (entry.bucket - first_bucket), 1)] = entry;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < len; i += blockDim.x) out[start + i] = gathered[i];
}

// The fine bins of more than `len_max` entries are sorted by all blocks. First, bucket_counts[bucket] += its entries.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_count_large(Windows windows, const Entry* entries, const uint32_t* total, const uint32_t* fine_counts, uint32_t len_max,
                uint32_t* bucket_counts) {
    const uint32_t len = *total;
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < len; base += (uint64_t)gridDim.x * THREADS) {
        const uint64_t i = base + threadIdx.x;
        const uint32_t bucket = i < len ? entries[i].bucket : 0;
        take(bucket_counts, bucket, i < len && fine_counts[bucket >> windows.fine_shift] > len_max);
    }
}

// Then, a block for each such bin: the counts of its buckets become the places of their first entries.
extern "C" __global__ void __launch_bounds__(FINE_THREADS)
msm_scan_large(Windows windows, const uint32_t* fine_starts, const uint32_t* fine_counts, uint32_t len_max,
               uint32_t* bucket_counts) {
    if (fine_counts[blockIdx.x] <= len_max) return;
    const uint32_t buckets = windows.sets << (windows.bits - 1);
    const uint32_t begin = blockIdx.x << windows.fine_shift, end = min(begin + (1u << windows.fine_shift), buckets);
    scan_counts(bucket_counts + begin, end - begin, fine_starts[blockIdx.x]);
}

// Last, their entries are written by bucket; `cursors` are the buckets' starts and become their ends.
extern "C" __global__ void __launch_bounds__(THREADS)
msm_scatter_large(Windows windows, const Entry* entries, const uint32_t* total, const uint32_t* fine_counts,
                  uint32_t len_max, uint32_t* cursors, Entry* out) {
    const uint32_t len = *total;
    for (uint64_t base = (uint64_t)blockIdx.x * THREADS; base < len; base += (uint64_t)gridDim.x * THREADS) {
        const uint64_t i = base + threadIdx.x;
        const Entry entry = i < len ? entries[i] : Entry{0, 0};
        const bool present = i < len && fine_counts[entry.bucket >> windows.fine_shift] > len_max;
        const uint32_t place = take(cursors, entry.bucket, present);
        if (present) out[place] = entry;
    }
}
