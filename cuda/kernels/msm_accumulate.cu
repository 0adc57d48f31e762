// Adding the points of a plan to their buckets, in G1 and in G2.
//
// Every thread (in G2 a pair of lanes) sums an equal share of the sorted entries, whatever the sizes of buckets are. The
// part of a bucket that began in an earlier share is a carry; msm_sum.cu adds those.

#include "curve.cuh"
#include "msm.cuh"

using namespace msm;

namespace {

// One block fills a multiprocessor's registers.
constexpr uint32_t THREADS = 384;

// Number of this thread's element-wide group of lanes among all of the grid.
template <class F> ZK_INLINE uint32_t group_in_grid() { return (blockIdx.x * THREADS + threadIdx.x) / F::LANES; }
template <class F> ZK_INLINE int lane_in_group() { return threadIdx.x % F::LANES; }

template <class F>
ZK_INLINE void accumulate(const void* bases, const Entry* sorted, const uint32_t* total, uint32_t first_share, uint32_t shares,
                          void* buckets, uint32_t* carry_buckets, void* carries) {
    const int lane = lane_in_group<F>();
    const uint32_t share = first_share + group_in_grid<F>();
    const uint64_t len = *total;
    const uint32_t share_len = (len + shares - 1) / shares;
    const uint64_t begin = min((uint64_t)share * share_len, len), end = min(begin + share_len, len);

    uint32_t bucket = NONE, carry_bucket = NONE;
    // Whether the bucket began before this share; whether what was added to `sum` so far is infinity.
    bool carried = false, empty = true;
    if (begin < end) {
        bucket = sorted[begin].bucket;
        carried = begin > 0 && sorted[begin - 1].bucket == bucket;
    }
    Xyzz<F> sum = Xyzz<F>::infinity();
    const auto finish_bucket = [&] {
        if (bucket == NONE) return;
        const Xyzz<F> result = Xyzz<F>::infinity().or_else(empty, sum);
        if (carried) {
            carry_bucket = bucket;
            result.store(carries, share, lane);
        } else {
            result.store(buckets, bucket, lane);
        }
    };
#pragma unroll 1
    for (uint32_t i = 0; i < share_len; i++) {
        const bool valid = begin + i < end;
        const Entry entry = valid ? sorted[begin + i] : Entry{0, bucket};
        if (entry.bucket != bucket) {
            finish_bucket();
            bucket = entry.bucket;
            carried = false;
            empty = true;
        }
        const auto load = [&] {
            return Affine<F>::load(bases, entry.point & ~NEGATIVE, lane).negated_if(entry.point & NEGATIVE);
        };
        const Affine<F> point = load();
        const bool skip = point.is_infinity() || !valid;
        const auto met = sum.add_distinct(point, skip || empty);
        if (any_lane(met.equal)) sum = Xyzz<F>::from(load()).doubled().or_else(met.equal, sum);
        // Read again rather than kept in registers through the addition.
        if (any_lane(empty && !skip)) {
            sum = Xyzz<F>::from(load()).or_else(empty && !skip, sum);
            empty = empty && skip;
        }
        empty = empty || met.opposite;
    }
    finish_bucket();
    if (lane == 0) carry_buckets[share] = carry_bucket;
}

}  // namespace

#define ZK_KERNELS(group, F)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) msm_##group##_accumulate(                                 \
        const void* bases, const Entry* sorted, const uint32_t* total, uint32_t first_share, uint32_t shares,          \
        void* buckets, uint32_t* carry_buckets, void* carries) {                                                       \
        accumulate<F>(bases, sorted, total, first_share, shares, buckets, carry_buckets, carries);                     \
    }

ZK_KERNELS(g1, Fp)
ZK_KERNELS(g2, Fp2)
