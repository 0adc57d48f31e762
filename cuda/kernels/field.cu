// Chains of products, one for each thread: what field arithmetic costs by itself, and a test of it.

#include "fp.cuh"
#include "fr.cuh"

namespace {

constexpr uint32_t THREADS = 256;

ZK_INLINE uint32_t thread_in_grid() { return blockIdx.x * THREADS + threadIdx.x; }

}  // namespace

// Each round: x = x * y, y = y * x.
extern "C" __global__ void __launch_bounds__(THREADS) field_fp_products(void* pairs, uint32_t rounds) {
    char* pair = static_cast<char*>(pairs) + (size_t)thread_in_grid() * 96;
    Fp x = Fp::load(pair), y = Fp::load(pair + 48);
#pragma unroll 1
    for (uint32_t i = 0; i < rounds; i++) {
        x = x * y;
        y = y * x;
    }
    x.store(pair);
    y.store(pair + 48);
}

// Each round: both are squared.
extern "C" __global__ void __launch_bounds__(THREADS) field_fp_squares(void* pairs, uint32_t rounds) {
    char* pair = static_cast<char*>(pairs) + (size_t)thread_in_grid() * 96;
    Fp x = Fp::load(pair), y = Fp::load(pair + 48);
#pragma unroll 1
    for (uint32_t i = 0; i < rounds; i++) {
        x = x.squared();
        y = y.squared();
    }
    x.store(pair);
    y.store(pair + 48);
}

// Each round: x = x * y, y = y * x.
extern "C" __global__ void __launch_bounds__(THREADS) field_fr_products(fr_t* pairs, uint32_t rounds) {
    fr_t* pair = pairs + (size_t)thread_in_grid() * 2;
    fr_t x = fr_load(pair), y = fr_load(pair + 1);
#pragma unroll 1
    for (uint32_t i = 0; i < rounds; i++) {
        x = x * y;
        y = y * x;
    }
    fr_store(pair, x);
    fr_store(pair + 1, y);
}
