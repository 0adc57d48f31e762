// Fr of BLS12-381 in Montgomery form: x * 2^256 mod r. Values below r go in and come out.
#pragma once
#include "zkhost.h"
#include <stdbool.h>

typedef zk_element fr;
typedef unsigned __int128 u128;  // its products are single instructions with wide arithmetic

static const fr FR_MODULUS = {{0xffffffff00000001, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}};
static const fr FR_R2 = {{0xc999e990f3f29c6d, 0x2b6cedcb87925c23, 0x05d314967254398f, 0x0748d9d99f59ff11}};  // 2^512
static const uint64_t FR_INVERSE = 0xfffffffeffffffff;  // -1/r mod 2^64

static inline bool fr_is_reduced(const fr *x) {
    for (int i = 3; i >= 0; i--)
        if (x->limbs[i] != FR_MODULUS.limbs[i]) return x->limbs[i] < FR_MODULUS.limbs[i];
    return false;
}

// x below 2r, less r if it is not below.
static inline fr fr_reduce(fr x) {
    if (fr_is_reduced(&x)) return x;
    uint64_t borrow = 0;
    for (int i = 0; i < 4; i++) {
        u128 difference = (u128)x.limbs[i] - FR_MODULUS.limbs[i] - borrow;
        x.limbs[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
    return x;
}

static inline fr fr_add(fr x, fr y) {
    uint64_t carry = 0;
    for (int i = 0; i < 4; i++) {
        u128 sum = (u128)x.limbs[i] + y.limbs[i] + carry;
        x.limbs[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
    return fr_reduce(x);  // r has 255 bits, so nothing is carried out
}

// x y / 2^256, by Montgomery's reduction after each limb of y. (Koc, Acar, Kaliski 1996: CIOS.)
static inline fr fr_mul(fr x, fr y) {
    uint64_t t[5] = {0};
    for (int i = 0; i < 4; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < 4; j++) {
            u128 sum = (u128)x.limbs[j] * y.limbs[i] + t[j] + carry;
            t[j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        t[4] = carry;  // t is below 2r here, so that the sum fits five limbs
        uint64_t m = t[0] * FR_INVERSE;
        carry = (uint64_t)(((u128)m * FR_MODULUS.limbs[0] + t[0]) >> 64);
        for (int j = 1; j < 4; j++) {
            u128 sum = (u128)m * FR_MODULUS.limbs[j] + t[j] + carry;
            t[j - 1] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        t[3] = t[4] + carry;
    }
    return fr_reduce((fr){{t[0], t[1], t[2], t[3]}});
}

static inline fr fr_to_montgomery(fr canonical) { return fr_mul(canonical, FR_R2); }
static inline fr fr_to_canonical(fr montgomery) { return fr_mul(montgomery, (fr){{1}}); }
