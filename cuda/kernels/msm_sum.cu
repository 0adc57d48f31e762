// What follows the accumulation of a multi-scalar multiplication, in G1 and in G2: carries, then bucket sets.
//
// Carries of one bucket are neighbours: they are summed by warps, level by level, and added to the bucket.
//
// Sets: sum_b (b + 1) B_b over a set's buckets. Segments of L buckets, the last one of what is left, give running sums
// T_t = sum_i B_{tL+i} and S_t = sum_i (i + 1) B_{tL+i}, and the set's sum is sum_t S_t + L sum_q 2^q (sum of T_t with bit
// q of t set): plain sums from there on, a few dozen points that the host puts together. L is what fills the device once.

#include "curve.cuh"
#include "msm.cuh"

using namespace msm;

namespace {

constexpr uint32_t THREADS = 128;
constexpr uint32_t WARPS = THREADS / 32;

// Number of this thread's element-wide group of lanes among all of the grid.
template <class F> ZK_INLINE uint32_t group_in_grid() { return (blockIdx.x * THREADS + threadIdx.x) / F::LANES; }
template <class F> ZK_INLINE int lane_in_group() { return threadIdx.x % F::LANES; }

// One level of adding carries: a run of one bucket within a warp is summed; if it began in the warp it is added to the
// bucket, else it becomes the warp's carry.
template <class F>
ZK_INLINE void add_carries(const uint32_t* carry_buckets, const void* carries, uint32_t len, void* buckets,
                           uint32_t* next_buckets, void* next) {
    constexpr uint32_t GROUPS = 32 / F::LANES;
    const int lane = lane_in_group<F>();
    const uint32_t item = group_in_grid<F>(), warp = item / GROUPS, group = item % GROUPS;
    const uint32_t bucket = item < len ? carry_buckets[item] : NONE;
    const bool present = bucket != NONE;
    if (!any_lane(present)) {
        if (threadIdx.x % 32 == 0 && warp * GROUPS < len) next_buckets[warp] = NONE;
        return;
    }
    const bool first = !(present && item > 0 && carry_buckets[item - 1] == bucket);
    Xyzz<F> sum = Xyzz<F>::infinity();
    if (present) sum = Xyzz<F>::load(carries, item, lane);
#pragma unroll 1
    for (uint32_t distance = 1; distance < GROUPS; distance *= 2) {
        const uint32_t other_bucket = __shfl_down_sync(ALL_LANES, bucket, distance * F::LANES);
        const bool same_run = present && group + distance < GROUPS && other_bucket == bucket;
        if (!any_lane(same_run)) break;
        const Xyzz<F> other = sum.from_lane_above(distance * F::LANES);
        sum.add(other.or_else(same_run, Xyzz<F>::infinity()));
    }
    if (group == 0) {
        const bool continues = !first;
        if (continues) sum.store(next, warp, lane);
        if (lane == 0) next_buckets[warp] = continues ? bucket : NONE;
    }
    const bool ends_here = present && first;
    if (!any_lane(ends_here)) return;
    Xyzz<F> result = Xyzz<F>::infinity();
    if (ends_here) result = Xyzz<F>::load(buckets, bucket, lane);
    result.add(sum);
    if (ends_here) result.store(buckets, bucket, lane);
}

// Segment t of a set is its buckets tL to tL + L, as far as there are any.
struct Segments {
    // all sets together, and each
    uint32_t count, per_set;
    uint32_t len;
    uint32_t buckets_per_set;
};

template <class F> ZK_INLINE void sum_segments(const void* buckets, Segments segments, void* weighted, void* plain) {
    const int lane = lane_in_group<F>();
    const uint32_t segment = group_in_grid<F>();
    const bool present = segment < segments.count;
    const uint32_t set = segment / segments.per_set, start = segment % segments.per_set * segments.len;
    const size_t first = (size_t)set * segments.buckets_per_set + start;
    const uint32_t len = present ? min(segments.len, segments.buckets_per_set - start) : 0;
    Xyzz<F> t = Xyzz<F>::infinity(), s = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t i = segments.len; i-- > 0;) {
        Xyzz<F> bucket = Xyzz<F>::infinity();
        if (i < len) bucket = Xyzz<F>::load(buckets, first + i, lane);
        t.add(bucket);
        s.add(t);
    }
    if (present) {
        t.store(plain, segment, lane);
        s.store(weighted, segment, lane);
    }
}

// The sum over the groups of a warp, in the first one.
template <class F> ZK_INLINE void sum_warp(Xyzz<F>& sum) {
    constexpr uint32_t GROUPS = 32 / F::LANES;
#pragma unroll 1
    for (uint32_t distance = GROUPS / 2; distance > 0; distance /= 2) {
        const Xyzz<F> other = sum.from_lane_above(distance * F::LANES);
        sum.add(other);
    }
}

// Grid (slice, sum, set). Sum 0 is of all S_t of the set, sum 1 + q of the T_t with bit q of t set.
template <class F> ZK_INLINE void sum_bits(const void* weighted, const void* plain, uint32_t per_set, void* slices) {
    constexpr uint32_t GROUPS = THREADS / F::LANES;
    const int lane = lane_in_group<F>();
    const uint32_t set = blockIdx.z, which = blockIdx.y;
    const void* points = which == 0 ? weighted : plain;
    // With bit q set there are at most so many numbers below per_set.
    const uint32_t bit = which == 0 ? 0 : 1u << (which - 1);
    const uint32_t len = which == 0 ? per_set : (per_set / (2 * bit) + 1) * bit;
    const uint32_t stride = gridDim.x * GROUPS;
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t base = 0; base < len; base += stride) {
        const uint32_t i = base + blockIdx.x * GROUPS + threadIdx.x / F::LANES;
        uint32_t segment = i;
        if (which > 0) {
            // i with a one put in at bit q
            const uint32_t low = i & (bit - 1);
            segment = (i - low) * 2 + bit + low;
        }
        Xyzz<F> point = Xyzz<F>::infinity();
        if (i < len && segment < per_set) point = Xyzz<F>::load(points, (size_t)set * per_set + segment, lane);
        sum.add(point);
    }
    sum_warp(sum);
    __shared__ uint4 of_warps[WARPS * Xyzz<F>::BYTES / sizeof(uint4)];
    const uint32_t group = threadIdx.x % 32 / F::LANES;
    if (group == 0) sum.store(of_warps, threadIdx.x / 32, lane);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = Xyzz<F>::infinity();
    if (group < WARPS) sum = Xyzz<F>::load(of_warps, group, lane);
    sum_warp(sum);
    if (group == 0) sum.store(slices, ((size_t)set * gridDim.y + which) * gridDim.x + blockIdx.x, lane);
}

// A warp for each sum: adds its slices, at most one for each group of lanes.
template <class F> ZK_INLINE void sum_slices(const void* slices, uint32_t sums, uint32_t slices_each, void* out) {
    constexpr uint32_t GROUPS = 32 / F::LANES;
    const int lane = lane_in_group<F>();
    const uint32_t warp = group_in_grid<F>() / GROUPS, group = group_in_grid<F>() % GROUPS;
    if (warp >= sums) return;
    Xyzz<F> sum = Xyzz<F>::infinity();
    if (group < slices_each) sum = Xyzz<F>::load(slices, (size_t)warp * slices_each + group, lane);
    sum_warp(sum);
    if (group == 0) sum.store(out, warp, lane);
}

}  // namespace

#define ZK_KERNELS(group, F)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) msm_##group##_add_carries(                                   \
        const uint32_t* carry_buckets, const void* carries, uint32_t len, void* buckets, uint32_t* next_buckets,       \
        void* next) {                                                                                                  \
        add_carries<F>(carry_buckets, carries, len, buckets, next_buckets, next);                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) msm_##group##_sum_segments(                                  \
        const void* buckets, Segments segments, void* weighted, void* plain) {                                         \
        sum_segments<F>(buckets, segments, weighted, plain);                                                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) msm_##group##_sum_bits(                                      \
        const void* weighted, const void* plain, uint32_t per_set, void* slices) {                                     \
        sum_bits<F>(weighted, plain, per_set, slices);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) msm_##group##_sum_slices(                                    \
        const void* slices, uint32_t sums, uint32_t slices_each, void* out) {                                          \
        sum_slices<F>(slices, sums, slices_each, out);                                                                 \
    }

ZK_KERNELS(g1, Fp)
ZK_KERNELS(g2, Fp2)
