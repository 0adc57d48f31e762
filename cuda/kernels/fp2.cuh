// Fp2 = Fp[u] / (u^2 + 1), one element over two adjacent lanes: the even lane holds c0, the odd lane c1. Lanes read each
// other's halves by shuffles, so all lanes of a warp must make these calls together, with elements in all of them.
#pragma once

#include "fp.cuh"

struct Fp2 {
    static constexpr int LANES = 2;

    Fp c;

    static ZK_INLINE bool is_odd_lane() { return threadIdx.x % 2; }
    static ZK_INLINE Fp partner(const Fp& a) {
        Fp r;
#pragma unroll
        for (int i = 0; i < Fp::WORDS; i++) r.w[i] = __shfl_xor_sync(0xffffffff, a.w[i], 1);
        return r;
    }

    static ZK_INLINE Fp2 zero() { return Fp2{Fp::zero()}; }
    static ZK_INLINE Fp2 one() { return Fp2{Fp::zero().or_else(is_odd_lane(), Fp::one())}; }

    // The same answer in both lanes.
    ZK_INLINE bool is_zero() const {
        const int mine = c.is_zero();
        return mine & __shfl_xor_sync(0xffffffff, mine, 1);
    }

    ZK_INLINE Fp2 or_else(bool condition, const Fp2& other) const { return Fp2{c.or_else(condition, other.c)}; }
    static ZK_INLINE Fp2 load(const void* memory, int lane) { return Fp2{Fp::load(memory, lane)}; }
    ZK_INLINE void store(void* memory, int lane) const { c.store(memory, lane); }
    ZK_INLINE Fp2 from_lane_above(int distance) const { return Fp2{c.from_lane_above(distance)}; }

    friend ZK_INLINE Fp2 operator+(const Fp2& a, const Fp2& b) { return Fp2{a.c + b.c}; }
    friend ZK_INLINE Fp2 operator-(const Fp2& a, const Fp2& b) { return Fp2{a.c - b.c}; }
    ZK_INLINE Fp2 negated() const { return Fp2{c.negated()}; }
    ZK_INLINE Fp2 doubled() const { return Fp2{c.doubled()}; }

    friend ZK_INLINE Fp2 operator*(const Fp2& a, const Fp2& b) {
        return Fp2{product_part(a.c, b.c)};
    }

    // This lane's part of (a0 b0 - a1 b1) + ((a0 + a1)(b0 + b1) - a0 b0 - a1 b1) u. Each lane makes the product of its own
    // halves and half the rows of the third product, and they exchange what they made: 2.5 products for both lanes, and a
    // reduction each.
    static __device__ __noinline__ Fp product_part(Fp a, Fp b) {
        constexpr int N = Fp::WORDS, H = N / 2;
        const bool odd = is_odd_lane();
        uint32_t own[2 * N], part[N + H];
        mul_rows<N>(own, a.w, b.w);
        // Sums of two elements below p fit without a reduction.
        a = unreduced_sum(a, partner(a));
        b = unreduced_sum(b, partner(b));
        uint32_t rows[H];
#pragma unroll
        for (int i = 0; i < H; i++) rows[i] = odd ? b.w[H + i] : b.w[i];
        mul_rows<N, H>(part, a.w, rows);

        // The odd lane's whole third product: its own rows are the upper ones.
        Fp::Wide result;
        uint32_t lower[N + H];
#pragma unroll
        for (int i = 0; i < N + H; i++) lower[i] = __shfl_xor_sync(0xffffffff, part[i], 1);
#pragma unroll
        for (int i = 0; i < H; i++) result.w[i] = lower[i];
        result.w[H] = ptx::add_cc(lower[H], part[0]);
#pragma unroll
        for (int i = H + 1; i < N + H; i++) result.w[i] = ptx::addc_cc(lower[i], part[i - H]);
#pragma unroll
        for (int i = N + H; i < 2 * N; i++) result.w[i] = ptx::addc_cc(part[i - H], 0);

        // The even lane: own - other. The odd lane: third product - own - other.
        uint32_t other[2 * N];
        const uint32_t all_if_odd = odd ? 0xffffffff : 0;
#pragma unroll
        for (int i = 0; i < 2 * N; i++) {
            other[i] = __shfl_xor_sync(0xffffffff, own[i], 1);
            result.w[i] = odd ? result.w[i] : own[i];
        }
        other[0] = ptx::add_cc(other[0], own[0] & all_if_odd);
#pragma unroll
        for (int i = 1; i < 2 * N; i++) other[i] = ptx::addc_cc(other[i], own[i] & all_if_odd);
        result.w[0] = ptx::sub_cc(result.w[0], other[0]);
#pragma unroll
        for (int i = 1; i < 2 * N; i++) result.w[i] = ptx::subc_cc(result.w[i], other[i]);
        // A negative difference becomes positive by p * 2^384.
        const uint32_t borrow = ptx::subc(0, 0);
        result.w[N] = ptx::add_cc(result.w[N], borrow & Fp::modulus(0));
#pragma unroll
        for (int i = 1; i < N; i++) result.w[N + i] = ptx::addc_cc(result.w[N + i], borrow & Fp::modulus(i));
        return result.reduced();
    }

    static ZK_INLINE Fp unreduced_sum(const Fp& a, const Fp& b) {
        Fp s;
        s.w[0] = ptx::add_cc(a.w[0], b.w[0]);
#pragma unroll
        for (int i = 1; i < Fp::WORDS; i++) s.w[i] = ptx::addc_cc(a.w[i], b.w[i]);
        return s;
    }

    // (a0 + a1)(a0 - a1) + 2 a1 a0 u
    ZK_INLINE Fp2 squared() const {
        const bool odd = is_odd_lane();
        const Fp other = partner(c);
        const Fp left = c + c.or_else(odd, other);
        const Fp right = other.or_else(odd, c - other);
        return Fp2{left * right};
    }

    static ZK_INLINE Fp2 difference_of_products(const Fp2& a, const Fp2& b, const Fp2& c, const Fp2& d) {
        return a * b - c * d;
    }

    // (a0 - a1 u) / (a0^2 + a1^2)
    __device__ __noinline__ Fp2 inverse() const {
        const Fp square = c.squared();
        const Fp scale = (square + partner(square)).inverse() * c;
        return Fp2{scale.negated().or_else(is_odd_lane(), scale)};
    }
};
