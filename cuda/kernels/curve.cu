// Arrays of points: repeated doubling, and from (X, Y, ZZ, ZZZ) to affine. For tables of multiples and for keys.

#include "curve.cuh"

namespace {

constexpr uint32_t THREADS = 128;

// out[i] = 2^doublings * points[i]
template <class F> ZK_INLINE void double_points(const void* points, uint32_t len, uint32_t doublings, void* out) {
    const int lane = threadIdx.x % F::LANES;
    const uint32_t i = (blockIdx.x * THREADS + threadIdx.x) / F::LANES;
    Affine<F> point{F::zero(), F::zero()};
    if (i < len) point = Affine<F>::load(points, i, lane);
    Xyzz<F> multiple = Xyzz<F>::from(point);
#pragma unroll 1
    for (uint32_t k = 0; k < doublings; k++) multiple = multiple.doubled();
    if (i < len) multiple.store(out, i, lane);
}

// Every group of lanes inverts the product of the points' ZZZ it is given, every `stride`-th one, and unwinds it.
// `products` has room for one element of F per point.
template <class F> ZK_INLINE void normalise(const void* points, uint32_t len, void* products, void* out) {
    constexpr uint32_t ELEMENT_BYTES = 48 * F::LANES;
    const int lane = threadIdx.x % F::LANES;
    const uint32_t stride = gridDim.x * THREADS / F::LANES;
    const uint32_t first = (blockIdx.x * THREADS + threadIdx.x) / F::LANES;
    const uint32_t rounds = (len + stride - 1) / stride;
    char* product_at = static_cast<char*>(products);
    // ZZZ, or 1 where there is no point or it is infinity
    const auto factor = [&](uint32_t i) {
        F zzz = F::zero();
        if (i < len) zzz = F::load(static_cast<const char*>(points) + (size_t)i * Xyzz<F>::BYTES + 3 * ELEMENT_BYTES, lane);
        const bool none = zzz.is_zero();
        return F::one().or_else(none, zzz);
    };
    F product = F::one();
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; round++) {
        const uint32_t i = first + round * stride;
        if (i < len) product.store(product_at + (size_t)i * ELEMENT_BYTES, lane);
        product = product * factor(i);
    }
    F inverse = product.inverse();
#pragma unroll 1
    for (uint32_t round = rounds; round-- > 0;) {
        const uint32_t i = first + round * stride;
        F before = F::one();
        Xyzz<F> point = Xyzz<F>::infinity();
        if (i < len) {
            before = F::load(product_at + (size_t)i * ELEMENT_BYTES, lane);
            point = Xyzz<F>::load(points, i, lane);
        }
        const Affine<F> affine = point.to_affine(inverse * before);
        inverse = inverse * factor(i);
        if (i < len) affine.store(out, i, lane);
    }
}

}  // namespace

#define ZK_KERNELS(group, F)                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) curve_##group##_double(                                      \
        const void* points, uint32_t len, uint32_t doublings, void* out) {                                             \
        double_points<F>(points, len, doublings, out);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) curve_##group##_normalise(                                   \
        const void* points, uint32_t len, void* products, void* out) {                                                 \
        normalise<F>(points, len, products, out);                                                                      \
    }

ZK_KERNELS(g1, Fp)
ZK_KERNELS(g2, Fp2)
