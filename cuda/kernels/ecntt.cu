// Transforms of vectors of points: what converts a monomial H query to quotient points. Slow and rare, so plain: one
// butterfly per thread, one launch per level.
#include "curve.cuh"
#include "fr.cuh"

namespace {

constexpr uint32_t THREADS = 128;
constexpr uint32_t WINDOW_BITS = 4, MULTIPLES = 1 << WINDOW_BITS, WINDOWS = 256 / WINDOW_BITS;

// scalar * point, the scalar canonical. All lanes of a warp together.
__device__ __noinline__ Xyzz<Fp> multiply(const Xyzz<Fp>& point, const fr_t& scalar) {
    Xyzz<Fp> multiples[MULTIPLES];
    multiples[0] = Xyzz<Fp>::infinity();
    multiples[1] = point;
#pragma unroll 1
    for (uint32_t i = 2; i < MULTIPLES; i++) {
        multiples[i] = multiples[i - 1];
        multiples[i].add(point);
    }
    Xyzz<Fp> sum = Xyzz<Fp>::infinity();
#pragma unroll 1
    for (uint32_t window = WINDOWS; window-- > 0;) {
#pragma unroll 1
        for (uint32_t i = 0; i < WINDOW_BITS; i++) sum = sum.doubled();
        const uint32_t word = scalar.limb[window / 8];
        sum.add(multiples[(word >> (WINDOW_BITS * (window % 8))) % MULTIPLES]);
    }
    return sum;
}

}  // namespace

// out[position] = scalars[i] * points[i] for i < `len`, infinity for others up to n; Montgomery scalars, one for all if
// `scalar_step` is 0. The position is i with its bits reversed.
extern "C" __global__ void __launch_bounds__(THREADS)
ecntt_scale(const void* points, uint32_t len, const fr_t* scalars, uint32_t scalar_step, uint32_t log_n, uint32_t first,
            void* out) {
    const uint32_t n = 1u << log_n, i = first + blockIdx.x * THREADS + threadIdx.x;
    const fr_t scalar = i < len ? fr_load(scalars + size_t(i) * scalar_step) * fr_t::plain_one() : fr_t::zero();
    const Affine<Fp> point = i < len ? Affine<Fp>::load(points, i, 0) : Affine<Fp>{Fp::zero(), Fp::zero()};
    const Xyzz<Fp> product = multiply(Xyzz<Fp>::from(point), scalar);
    if (i < n) product.store(out, log_n == 0 ? 0 : __brev(i) >> (32 - log_n), 0);
}

// Level `level` of decimation in time over points, in place: butterflies first to first + the grid's threads.
// roots[i] = w^i, i < n/2, of the domain's root; conjugate roots are used.
extern "C" __global__ void __launch_bounds__(THREADS)
ecntt_level(void* points, const fr_t* roots, uint32_t log_n, uint32_t level, uint32_t first) {
    const uint32_t half = 1u << level, butterfly = first + blockIdx.x * THREADS + threadIdx.x;
    const bool inside = butterfly < (1u << log_n) / 2;
    const uint32_t low = butterfly & (half - 1), at = inside ? ((butterfly >> level) << (level + 1)) | low : 0;
    const uint32_t exponent = inside ? low << (log_n - 1 - level) : 0;
    // w^-e = -w^(n/2 - e)
    fr_t scalar = fr_t::one();
    if (exponent != 0) scalar = fr_load(roots + ((1u << log_n) / 2 - exponent)).negated();
    Xyzz<Fp> a = Xyzz<Fp>::load(points, at, 0);
    Xyzz<Fp> b = multiply(Xyzz<Fp>::load(points, inside ? at + half : 0, 0), scalar * fr_t::plain_one());
    Xyzz<Fp> difference = a;
    a.add(b);
    b.y = b.y.negated();
    difference.add(b);
    if (inside) {
        a.store(points, at, 0);
        difference.store(points, at + half, 0);
    }
}
