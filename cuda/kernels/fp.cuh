// The base field Fp of BLS12-381 in Montgomery form (R = 2^384): twelve 32-bit words, least significant first, always
// reduced below p. In memory an element is 48 bytes, the layout of blst_fp; every element here starts at a multiple of
// 16 bytes.
//
// A product is a 24-word product and one reduction, kept apart so that sums of products share a reduction.
#pragma once

#include "wide.cuh"

struct Fp {
    static constexpr int WORDS = 12;
    // One element is held by one lane.
    static constexpr int LANES = 1;
    // -1/p modulo 2^32
    static constexpr uint32_t NEG_INV = 0xfffcfffd;

    uint32_t w[WORDS];

    static ZK_INLINE uint32_t modulus(int i) {
        constexpr uint32_t words[WORDS] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                                           0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
        return words[i];
    }

    static ZK_INLINE Fp zero() { return Fp{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}; }

    // 2^384 modulo p: the Montgomery form of 1.
    static ZK_INLINE Fp one() {
        return Fp{{0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857, 0x70525745, 0x77ce5853,
                   0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3}};
    }

    ZK_INLINE bool is_zero() const {
        uint32_t any = 0;
#pragma unroll
        for (int i = 0; i < WORDS; i++) any |= w[i];
        return any == 0;
    }

    // This if `condition`, else `other`.
    ZK_INLINE Fp or_else(bool condition, const Fp& other) const {
        Fp r;
#pragma unroll
        for (int i = 0; i < WORDS; i++) r.w[i] = condition ? w[i] : other.w[i];
        return r;
    }

    // `lane` is which part of an element in memory this lane holds: always 0 here, see Fp2.
    static ZK_INLINE Fp load(const void* memory, int lane = 0) {
        const uint4* from = static_cast<const uint4*>(memory) + 3 * lane;
        uint4 a = from[0], b = from[1], c = from[2];
        return Fp{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w, c.x, c.y, c.z, c.w}};
    }

    ZK_INLINE void store(void* memory, int lane = 0) const {
        uint4* to = static_cast<uint4*>(memory) + 3 * lane;
        to[0] = make_uint4(w[0], w[1], w[2], w[3]);
        to[1] = make_uint4(w[4], w[5], w[6], w[7]);
        to[2] = make_uint4(w[8], w[9], w[10], w[11]);
    }

    // The element as another lane holds it, `distance` lanes up.
    ZK_INLINE Fp from_lane_above(int distance) const {
        Fp r;
#pragma unroll
        for (int i = 0; i < WORDS; i++) r.w[i] = __shfl_down_sync(0xffffffff, w[i], distance);
        return r;
    }

    // From below 2p to below p.
    ZK_INLINE Fp reduced() const {
        Fp t;
        t.w[0] = ptx::sub_cc(w[0], modulus(0));
#pragma unroll
        for (int i = 1; i < WORDS; i++) t.w[i] = ptx::subc_cc(w[i], modulus(i));
        const uint32_t borrow = ptx::subc(0, 0);
        return or_else(borrow != 0, t);
    }

    friend ZK_INLINE Fp operator+(const Fp& a, const Fp& b) {
        Fp s;
        s.w[0] = ptx::add_cc(a.w[0], b.w[0]);
#pragma unroll
        for (int i = 1; i < WORDS - 1; i++) s.w[i] = ptx::addc_cc(a.w[i], b.w[i]);
        s.w[WORDS - 1] = ptx::addc(a.w[WORDS - 1], b.w[WORDS - 1]);
        return s.reduced();
    }

    friend ZK_INLINE Fp operator-(const Fp& a, const Fp& b) {
        Fp d;
        d.w[0] = ptx::sub_cc(a.w[0], b.w[0]);
#pragma unroll
        for (int i = 1; i < WORDS; i++) d.w[i] = ptx::subc_cc(a.w[i], b.w[i]);
        const uint32_t borrow = ptx::subc(0, 0);
        d.w[0] = ptx::add_cc(d.w[0], borrow & modulus(0));
#pragma unroll
        for (int i = 1; i < WORDS - 1; i++) d.w[i] = ptx::addc_cc(d.w[i], borrow & modulus(i));
        d.w[WORDS - 1] = ptx::addc(d.w[WORDS - 1], borrow & modulus(WORDS - 1));
        return d;
    }

    ZK_INLINE Fp negated() const { return zero() - *this; }
    ZK_INLINE Fp doubled() const { return *this + *this; }

    // A sum of products before its reduction.
    struct Wide {
        uint32_t w[2 * WORDS];

        friend ZK_INLINE Wide operator+(const Wide& a, const Wide& b) {
            Wide s;
            s.w[0] = ptx::add_cc(a.w[0], b.w[0]);
#pragma unroll
            for (int i = 1; i < 2 * WORDS - 1; i++) s.w[i] = ptx::addc_cc(a.w[i], b.w[i]);
            s.w[2 * WORDS - 1] = ptx::addc(a.w[2 * WORDS - 1], b.w[2 * WORDS - 1]);
            return s;
        }

        // This / 2^384 modulo p, for a sum of at most nine products: p < 0.102 * 2^384, so that is below 2p.
        ZK_INLINE Fp reduced() const {
            const uint32_t none[WORDS] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
            return reduced(w, none, w + WORDS);
        }

        // The same of low_even + low_odd + high * 2^384, where low_odd[0] is not read but 0.
        //
        // Montgomery's reduction by rows: each adds the multiple m * p that clears the lowest word left. As in a product,
        // words are gathered in two accumulators, which take over from a product's own. The upper half is added last.
        static ZK_INLINE Fp reduced(const uint32_t* low_even, const uint32_t* low_odd, const uint32_t* high) {
            uint32_t even[2 * WORDS + 2], odd[2 * WORDS + 2];
#pragma unroll
            for (int i = 0; i < WORDS; i++) even[i] = low_even[i];
#pragma unroll
            for (int i = 1; i < WORDS; i++) odd[i] = low_odd[i];
#pragma unroll
            for (int i = 0; i < WORDS; i++) {
                uint32_t* same = i % 2 ? odd : even;
                uint32_t* other = i % 2 ? even : odd;
                // The lowest word is the sum of both; its carry goes into the other accumulator's row.
                if (i > 0) same[i] = ptx::add_cc(same[i], other[i]);
                const uint32_t m = same[i] * NEG_INV;
                other[i + WORDS] = 0;
#pragma unroll
                for (int j = 1; j < WORDS; j += 2) {
                    uint32_t* at = other + i + j;
                    const bool chained = i > 0 || j > 1;
                    at[0] = chained ? ptx::madc_lo_cc(modulus(j), m, at[0]) : ptx::mad_lo_cc(modulus(j), m, at[0]);
                    at[1] = ptx::madc_hi_cc(modulus(j), m, at[1]);
                }
                ptx::mad_lo_cc(modulus(0), m, same[i]);
                same[i + 1] = ptx::madc_hi_cc(modulus(0), m, same[i + 1]);
#pragma unroll
                for (int j = 2; j < WORDS; j += 2) {
                    uint32_t* at = same + i + j;
                    at[0] = ptx::madc_lo_cc(modulus(j), m, at[0]);
                    at[1] = ptx::madc_hi_cc(modulus(j), m, at[1]);
                }
                same[i + WORDS] = ptx::addc(0, 0);
            }
            Fp r;
            r.w[0] = ptx::add_cc(even[WORDS], odd[WORDS]);
#pragma unroll
            for (int i = 1; i < WORDS - 1; i++) r.w[i] = ptx::addc_cc(even[WORDS + i], odd[WORDS + i]);
            r.w[WORDS - 1] = ptx::addc(even[2 * WORDS - 1], odd[2 * WORDS - 1]);
            r.w[0] = ptx::add_cc(r.w[0], high[0]);
#pragma unroll
            for (int i = 1; i < WORDS - 1; i++) r.w[i] = ptx::addc_cc(r.w[i], high[i]);
            r.w[WORDS - 1] = ptx::addc(r.w[WORDS - 1], high[WORDS - 1]);
            return r.Fp::reduced();
        }
    };

    static ZK_INLINE Wide wide_product(const Fp& a, const Fp& b) {
        Wide r;
        mul_rows<WORDS>(r.w, a.w, b.w);
        return r;
    }

    friend ZK_INLINE Fp operator*(const Fp& a, const Fp& b) { return product(a, b); }

    ZK_INLINE Fp squared() const { return square(*this); }

    // a * b - c * d with one reduction.
    static ZK_INLINE Fp difference_of_products(const Fp& a, const Fp& b, const Fp& c, const Fp& d) {
        return sum_of_products(a, b, c.negated(), d);
    }

    // What all else is made of are calls, with arguments by value because those travel in registers: a point addition in
    // place would not fit the instruction cache.

    static __device__ __noinline__ Fp product(Fp a, Fp b) {
        uint32_t even[2 * WORDS], odd[2 * WORDS], high[WORDS];
        mul_rows_apart<WORDS>(even, odd, a.w, b.w);
        high[0] = ptx::add_cc(even[WORDS], odd[WORDS]);
#pragma unroll
        for (int i = 1; i < WORDS - 1; i++) high[i] = ptx::addc_cc(even[WORDS + i], odd[WORDS + i]);
        high[WORDS - 1] = ptx::addc(even[2 * WORDS - 1], odd[2 * WORDS - 1]);
        return Wide::reduced(even, odd, high);
    }

    static __device__ __noinline__ Fp square(Fp a) {
        Wide r;
        square_rows<WORDS>(r.w, a.w);
        return r.reduced();
    }

    static __device__ __noinline__ Fp sum_of_products(Fp a, Fp b, Fp c, Fp d) {
        return (wide_product(a, b) + wide_product(c, d)).reduced();
    }

    // 1 / this by Fermat's theorem, 0 for 0: some 600 products, to be shared by many elements.
    __device__ __noinline__ Fp inverse() const {
        constexpr uint32_t exponent[WORDS] = {0xffffaaa9, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                                              0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
        Fp r = *this;
        // From the bit below the highest, which is bit 380.
#pragma unroll 1
        for (int bit = 379; bit >= 0; bit--) {
            r = r.squared();
            if (exponent[bit / 32] >> (bit % 32) & 1) r = r * *this;
        }
        return r;
    }
};
