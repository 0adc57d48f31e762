// The scalar field Fr of BLS12-381 in Montgomery form (R = 2^256): eight 32-bit limbs, least significant first, always
// reduced below r unless a function says otherwise. In memory an element is 32 bytes, the layout of blst_fr.
//
// A product keeps two rows of partial products, one for even and one for odd limbs, so that every multiplication is a
// full 32x32+64 step with no carry between the rows [CUDA even/odd technique, as in sppark and CGBN]. r = 1 + (2^32 - 1)
// 2^32 modulo 2^64, so -1/r = -1 modulo 2^32 and two of the eight products of each reduction step are additions: 112
// wide multiplications for a product instead of 128.
#pragma once
#include "ptx.cuh"

// The modulus. Not constexpr for the device: a product by an immediate is compiled to two half-width instructions, a
// product by a word of constant memory to one wide one.
#ifdef __CUDACC__
static __device__ __constant__ uint32_t FR_MODULUS[8]
#else
static const uint32_t FR_MODULUS[8]
#endif
    = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};

struct alignas(16) fr_t {
    uint32_t limb[8];

    static ZK_INLINE fr_t zero() { return fr_t{{0, 0, 0, 0, 0, 0, 0, 0}}; }
    // 2^256 modulo r: the Montgomery form of 1.
    static ZK_INLINE fr_t one() {
        return fr_t{{0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa, 0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159}};
    }
    // 2^512 modulo r: a product with it takes a canonical value to Montgomery form.
    static ZK_INLINE fr_t r_squared() {
        return fr_t{{0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb, 0x7254398f, 0x05d31496, 0x9f59ff11, 0x0748d9d9}};
    }
    // The plain integer 1: a product with it takes Montgomery form to the canonical value.
    static ZK_INLINE fr_t plain_one() { return fr_t{{1, 0, 0, 0, 0, 0, 0, 0}}; }

    ZK_INLINE bool is_zero() const {
        return (limb[0] | limb[1] | limb[2] | limb[3] | limb[4] | limb[5] | limb[6] | limb[7]) == 0;
    }

    // From below 2r to below r.
    ZK_INLINE fr_t reduced() const {
        fr_t t;
        t.limb[0] = ptx::sub_cc(limb[0], FR_MODULUS[0]);
#pragma unroll
        for (int i = 1; i < 8; i++) t.limb[i] = ptx::subc_cc(limb[i], FR_MODULUS[i]);
        const uint32_t borrow = ptx::subc(0, 0);
#pragma unroll
        for (int i = 0; i < 8; i++) t.limb[i] = borrow ? limb[i] : t.limb[i];
        return t;
    }

    // a + b below 2r, not reduced: may only be the right factor of a product next.
    static ZK_INLINE fr_t add_lazy(const fr_t& a, const fr_t& b) {
        fr_t s;
        s.limb[0] = ptx::add_cc(a.limb[0], b.limb[0]);
#pragma unroll
        for (int i = 1; i < 7; i++) s.limb[i] = ptx::addc_cc(a.limb[i], b.limb[i]);
        s.limb[7] = ptx::addc(a.limb[7], b.limb[7]);
        return s;
    }

    // a - b + r below 2r, not reduced: may only be the right factor of a product next.
    static ZK_INLINE fr_t sub_lazy(const fr_t& a, const fr_t& b) {
        fr_t d;
        d.limb[0] = ptx::sub_cc(a.limb[0], b.limb[0]);
#pragma unroll
        for (int i = 1; i < 7; i++) d.limb[i] = ptx::subc_cc(a.limb[i], b.limb[i]);
        d.limb[7] = ptx::subc(a.limb[7], b.limb[7]);
        d.limb[0] = ptx::add_cc(d.limb[0], FR_MODULUS[0]);
#pragma unroll
        for (int i = 1; i < 7; i++) d.limb[i] = ptx::addc_cc(d.limb[i], FR_MODULUS[i]);
        d.limb[7] = ptx::addc(d.limb[7], FR_MODULUS[7]);
        return d;
    }

    friend ZK_INLINE fr_t operator+(const fr_t& a, const fr_t& b) { return add_lazy(a, b).reduced(); }

    friend ZK_INLINE fr_t operator-(const fr_t& a, const fr_t& b) {
        fr_t d;
        d.limb[0] = ptx::sub_cc(a.limb[0], b.limb[0]);
#pragma unroll
        for (int i = 1; i < 8; i++) d.limb[i] = ptx::subc_cc(a.limb[i], b.limb[i]);
        const uint32_t mask = ptx::subc(0, 0);
        d.limb[0] = ptx::add_cc(d.limb[0], FR_MODULUS[0] & mask);
#pragma unroll
        for (int i = 1; i < 7; i++) d.limb[i] = ptx::addc_cc(d.limb[i], FR_MODULUS[i] & mask);
        d.limb[7] = ptx::addc(d.limb[7], FR_MODULUS[7] & mask);
        return d;
    }

    ZK_INLINE fr_t negated() const { return zero() - *this; }

    // The Montgomery product of a below r and b below 2r. (In the other order the running sum could pass 2^288.)
    friend ZK_INLINE fr_t operator*(const fr_t& a, const fr_t& b) {
        // The running sum is even[0..8] + 2^32 odd[0..8]; the rows swap roles when the sum moves down by one limb.
        uint32_t even[8], odd[8];
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            odd[i] = a.limb[i + 1] * b.limb[0];
            odd[i + 1] = ptx::mul_hi(a.limb[i + 1], b.limb[0]);
            even[i] = a.limb[i] * b.limb[0];
            even[i + 1] = ptx::mul_hi(a.limb[i], b.limb[0]);
        }
        reduce_limb(even, odd);
        multiply_limb(odd, even, a, b.limb[1]);
#pragma unroll
        for (int j = 2; j < 8; j += 2) {
            multiply_limb(even, odd, a, b.limb[j]);
            multiply_limb(odd, even, a, b.limb[j + 1]);
        }
        fr_t t;
        t.limb[0] = ptx::add_cc(even[0], odd[1]);
#pragma unroll
        for (int i = 1; i < 7; i++) t.limb[i] = ptx::addc_cc(even[i], odd[i + 1]);
        t.limb[7] = ptx::addc(even[7], 0);
        return t.reduced();
    }

  private:
    // One more row: moves the sum down a limb (low holds what was the odd row, high the even one), adds a * b, reduces.
    static ZK_INLINE void multiply_limb(uint32_t low[8], uint32_t high[8], const fr_t& a, uint32_t b) {
        low[0] = ptx::add_cc(low[0], high[1]);
#pragma unroll
        for (int i = 0; i < 6; i += 2) {
            high[i] = ptx::madc_lo_cc(a.limb[i + 1], b, high[i + 2]);
            high[i + 1] = ptx::madc_hi_cc(a.limb[i + 1], b, high[i + 3]);
        }
        high[6] = ptx::madc_lo_cc(a.limb[7], b, 0);
        high[7] = ptx::madc_hi(a.limb[7], b, 0);

        low[0] = ptx::mad_lo_cc(a.limb[0], b, low[0]);
        low[1] = ptx::madc_hi_cc(a.limb[0], b, low[1]);
#pragma unroll
        for (int i = 2; i < 8; i += 2) {
            low[i] = ptx::madc_lo_cc(a.limb[i], b, low[i]);
            low[i + 1] = ptx::madc_hi_cc(a.limb[i], b, low[i + 1]);
        }
        high[7] = ptx::addc(high[7], 0);
        reduce_limb(low, high);
    }

    // Adds the multiple q r that makes the lowest limb zero: q = -low[0].
    static ZK_INLINE void reduce_limb(uint32_t low[8], uint32_t high[8]) {
        // The product is -low[0], but a negation as such keeps the compiler from forming wide multiplications with q.
        const uint32_t lowest = low[0], q = lowest * FR_MODULUS[1];
        // q (2^32 - 1) = lowest + 2^32 (q - 1), and 0 if q is.
        high[0] = ptx::add_cc(high[0], lowest);
        high[1] = ptx::addc_cc(high[1], q - (lowest != 0));
        high[2] = ptx::madc_lo_cc(q, FR_MODULUS[3], high[2]);
        high[3] = ptx::madc_hi_cc(q, FR_MODULUS[3], high[3]);
        high[4] = ptx::madc_lo_cc(q, FR_MODULUS[5], high[4]);
        high[5] = ptx::madc_hi_cc(q, FR_MODULUS[5], high[5]);
        high[6] = ptx::madc_lo_cc(q, FR_MODULUS[7], high[6]);
        high[7] = ptx::madc_hi(q, FR_MODULUS[7], high[7]);

        low[0] = ptx::add_cc(lowest, q);
        low[1] = ptx::addc_cc(low[1], 0);
        low[2] = ptx::madc_lo_cc(q, FR_MODULUS[2], low[2]);
        low[3] = ptx::madc_hi_cc(q, FR_MODULUS[2], low[3]);
        low[4] = ptx::madc_lo_cc(q, FR_MODULUS[4], low[4]);
        low[5] = ptx::madc_hi_cc(q, FR_MODULUS[4], low[5]);
        low[6] = ptx::madc_lo_cc(q, FR_MODULUS[6], low[6]);
        low[7] = ptx::madc_hi_cc(q, FR_MODULUS[6], low[7]);
        high[7] = ptx::addc(high[7], 0);
    }
};

// base to the power of exponent.
ZK_INLINE fr_t fr_power(fr_t base, uint64_t exponent) {
    fr_t out = fr_t::one();
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) out = out * base;
        base = base * base;
    }
    return out;
}

// Sixteen bytes at a time; the compiler does not always do this for a struct.
ZK_INLINE fr_t fr_load(const fr_t* from) {
    fr_t out;
    reinterpret_cast<uint4*>(out.limb)[0] = reinterpret_cast<const uint4*>(from)[0];
    reinterpret_cast<uint4*>(out.limb)[1] = reinterpret_cast<const uint4*>(from)[1];
    return out;
}

ZK_INLINE void fr_store(fr_t* to, const fr_t& value) {
    reinterpret_cast<uint4*>(to)[0] = reinterpret_cast<const uint4*>(value.limb)[0];
    reinterpret_cast<uint4*>(to)[1] = reinterpret_cast<const uint4*>(value.limb)[1];
}
