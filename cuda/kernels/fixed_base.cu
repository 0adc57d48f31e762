// Multiples of one fixed point, for keys: out[i] = scalars[i] * G from a table of digit * 2^(8 window) * G.
#include "curve.cuh"

namespace {

constexpr uint32_t THREADS = 128;
constexpr uint32_t WINDOWS = 32, DIGITS = 256;  // mirrored in setup.rs

template <class F> ZK_INLINE void multiply(const void* table, const uint8_t* scalars, uint32_t len, void* out) {
    const int lane = threadIdx.x % F::LANES;
    const uint32_t i = (blockIdx.x * THREADS + threadIdx.x) / F::LANES;
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t window = 0; window < WINDOWS; window++) {
        const uint32_t digit = i < len ? scalars[size_t(i) * WINDOWS + window] : 0;
        const Affine<F> point = Affine<F>::load(table, window * DIGITS + digit, lane);
        const bool skip = digit == 0, none = sum.is_infinity();
        // The sum so far is less than this digit's multiple and both together less than the order: never equal or opposite.
        Xyzz<F> added = sum;
        added.add_distinct(point, skip || none);
        sum = Xyzz<F>::from(point).or_else(none && !skip, added);
    }
    if (i < len) sum.store(out, i, lane);
}

}  // namespace

#define ZK_KERNELS(group, F)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) fixed_base_##group(const void* table, const uint8_t* scalars, \
                                                                             uint32_t len, void* out) {                 \
        multiply<F>(table, scalars, len, out);                                                                         \
    }

ZK_KERNELS(g1, Fp)
ZK_KERNELS(g2, Fp2)
