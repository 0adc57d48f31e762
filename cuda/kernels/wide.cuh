// Products of multi-word integers, by rows.
//
// Row i of a product adds b[i] * a. Products of 32-bit words are 64 bits wide, so those that start at an even
// word and those that start at an odd word are gathered in two accumulators; within each, a row is one unbroken carry
// chain. The accumulators are added at the end.
#pragma once

#include "ptx.cuh"

// acc[0..N) = a[0] * b, a[2] * b, ...: N / 2 double words
template <int N> ZK_INLINE void mul_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        acc[j] = a[j] * b;
        acc[j + 1] = ptx::mul_hi(a[j], b);
    }
}

// acc[0..N) += a[0] * b, a[2] * b, ...; the last carry is left in the flag.
template <int N> ZK_INLINE void mad_row(uint32_t* acc, const uint32_t* a, uint32_t b) {
    acc[0] = ptx::mad_lo_cc(a[0], b, acc[0]);
    acc[1] = ptx::madc_hi_cc(a[0], b, acc[1]);
#pragma unroll
    for (int j = 2; j < N; j += 2) {
        acc[j] = ptx::madc_lo_cc(a[j], b, acc[j]);
        acc[j + 1] = ptx::madc_hi_cc(a[j], b, acc[j + 1]);
    }
}

// even[0..N + M) + odd[1..N + M) = a * b by rows, for M words of b, M even.
template <int N, int M = N> ZK_INLINE void mul_rows_apart(uint32_t* even, uint32_t* odd, const uint32_t* a, const uint32_t* b) {
    mul_row<N>(even, a, b[0]);
    mul_row<N>(odd + 1, a + 1, b[0]);
    even[N] = 0;
#pragma unroll
    for (int i = 1; i < M; i++) {
        // The even words of a fall on words of i's parity. Their row's carry starts a new word; the other row's top
        // word is new, so that one leaves no carry.
        uint32_t* same = i % 2 ? odd : even;
        uint32_t* other = i % 2 ? even : odd;
        mad_row<N>(same + i, a, b[i]);
        same[i + N] = ptx::addc(0, 0);
        other[i + N] = 0;
        mad_row<N>(other + i + 1, a + 1, b[i]);
    }
}

// r[0..N + M) = a * b
template <int N, int M = N> ZK_INLINE void mul_rows(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    uint32_t even[N + M], odd[N + M];
    mul_rows_apart<N, M>(even, odd, a, b);
    r[0] = even[0];
    r[1] = ptx::add_cc(even[1], odd[1]);
#pragma unroll
    for (int k = 2; k < N + M - 1; k++) r[k] = ptx::addc_cc(even[k], odd[k]);
    r[N + M - 1] = ptx::addc(even[N + M - 1], odd[N + M - 1]);
}

// r[0..2N) = a * a: each mixed product once, doubled, and the squares.
template <int N> ZK_INLINE void square_rows(uint32_t* r, const uint32_t* a) {
    uint32_t even[2 * N], odd[2 * N];
#pragma unroll
    for (int k = 0; k < 2 * N; k++) even[k] = odd[k] = 0;
#pragma unroll
    for (int i = 0; i < N - 1; i++) {
        // a[i] * a[j], j > i: odd distances fall on odd words. The row that ends with a[N - 1] opens new words, the
        // other one leaves a carry.
#pragma unroll
        for (int distance = 1; distance <= 2; distance++) {
            uint32_t* acc = distance == 1 ? odd : even;
            int last = (N - 1 - i) % 2 == distance % 2 ? N - 1 : N - 2;
#pragma unroll
            for (int j = i + distance; j <= last; j += 2) {
                acc[i + j] = j == i + distance ? ptx::mad_lo_cc(a[i], a[j], acc[i + j]) : ptx::madc_lo_cc(a[i], a[j], acc[i + j]);
                acc[i + j + 1] = ptx::madc_hi_cc(a[i], a[j], acc[i + j + 1]);
            }
            if (i > 0 && last == N - 2 && i + distance <= last) acc[i + N] = ptx::addc(0, 0);
        }
    }
    r[1] = odd[1];
    r[2] = ptx::add_cc(even[2], odd[2]);
#pragma unroll
    for (int k = 3; k < 2 * N - 1; k++) r[k] = ptx::addc_cc(even[k], odd[k]);
    r[2 * N - 1] = ptx::addc(0, 0);
    r[1] = ptx::add_cc(r[1], r[1]);
#pragma unroll
    for (int k = 2; k < 2 * N - 1; k++) r[k] = ptx::addc_cc(r[k], r[k]);
    r[2 * N - 1] = ptx::addc(r[2 * N - 1], r[2 * N - 1]);
    r[0] = a[0] * a[0];
    r[1] = ptx::add_cc(r[1], ptx::mul_hi(a[0], a[0]));
#pragma unroll
    for (int i = 1; i < N; i++) {
        r[2 * i] = ptx::madc_lo_cc(a[i], a[i], r[2 * i]);
        r[2 * i + 1] = i == N - 1 ? ptx::madc_hi(a[i], a[i], r[2 * i + 1]) : ptx::madc_hi_cc(a[i], a[i], r[2 * i + 1]);
    }
}
