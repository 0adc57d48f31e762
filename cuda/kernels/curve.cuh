// Points of y^2 = x^3 + b over a field F (b is not needed), affine and as (X, Y, ZZ, ZZZ) with x = X/ZZ, y = Y/ZZZ and
// ZZ^3 = ZZZ^2. Formulas: madd-2008-s, add-2008-s, dbl-2008-s-1 and mdbl-2008-s-1 of the Explicit-Formulas Database.
//
// An element of F may lie over F::LANES lanes that read each other, so all lanes of a warp make these calls together.
// What differs from lane to lane is chosen by selects, and rare cases are entered by a whole warp.
#pragma once

#include "fp2.cuh"

// Whether `condition` holds in any lane of the warp.
ZK_INLINE bool any_lane(bool condition) { return __any_sync(0xffffffff, condition); }

// Memory: x, y; the point at infinity is all zero.
template <class F> struct Affine {
    static constexpr int BYTES = 96 * F::LANES;

    F x, y;

    ZK_INLINE bool is_infinity() const {
        const bool x_zero = x.is_zero(), y_zero = y.is_zero();
        return x_zero && y_zero;
    }
    ZK_INLINE Affine negated_if(bool condition) const { return Affine{x, y.negated().or_else(condition, y)}; }

    // Point `index` of an array; `lane` in 0..F::LANES.
    static ZK_INLINE Affine load(const void* points, size_t index, int lane) {
        const char* at = static_cast<const char*>(points) + index * BYTES;
        return Affine{F::load(at, lane), F::load(at + BYTES / 2, lane)};
    }
    ZK_INLINE void store(void* points, size_t index, int lane) const {
        char* at = static_cast<char*>(points) + index * BYTES;
        x.store(at, lane);
        y.store(at + BYTES / 2, lane);
    }
};

// Memory: X, Y, ZZ, ZZZ; the point at infinity has ZZ = ZZZ = 0, so zeroed memory is infinities.
template <class F> struct Xyzz {
    static constexpr int BYTES = 192 * F::LANES;

    F x, y, zz, zzz;

    static ZK_INLINE Xyzz infinity() { return Xyzz{F::zero(), F::zero(), F::zero(), F::zero()}; }
    static ZK_INLINE Xyzz from(const Affine<F>& p) {
        const F z = F::zero().or_else(p.is_infinity(), F::one());
        return Xyzz{p.x, p.y, z, z};
    }
    ZK_INLINE bool is_infinity() const { return zz.is_zero(); }

    ZK_INLINE Xyzz or_else(bool condition, const Xyzz& other) const {
        return Xyzz{x.or_else(condition, other.x), y.or_else(condition, other.y), zz.or_else(condition, other.zz),
                    zzz.or_else(condition, other.zzz)};
    }
    ZK_INLINE Xyzz from_lane_above(int distance) const {
        return Xyzz{x.from_lane_above(distance), y.from_lane_above(distance), zz.from_lane_above(distance),
                    zzz.from_lane_above(distance)};
    }

    static ZK_INLINE Xyzz load(const void* points, size_t index, int lane) {
        const char* at = static_cast<const char*>(points) + index * BYTES;
        return Xyzz{F::load(at, lane), F::load(at + BYTES / 4, lane), F::load(at + BYTES / 2, lane),
                    F::load(at + BYTES / 4 * 3, lane)};
    }
    ZK_INLINE void store(void* points, size_t index, int lane) const {
        char* at = static_cast<char*>(points) + index * BYTES;
        x.store(at, lane);
        y.store(at + BYTES / 4, lane);
        zz.store(at + BYTES / 2, lane);
        zzz.store(at + BYTES / 4 * 3, lane);
    }

    // 6 products, 3 squares. Infinity stays infinity; there are no points of order two.
    __device__ __noinline__ Xyzz doubled() const {
        const F u = y.doubled();
        const F v = u.squared();
        const F w = u * v;
        const F s = x * v;
        const F xx = x.squared();
        const F m = xx.doubled() + xx;
        const F x3 = m.squared() - s.doubled();
        return Xyzz{x3, F::difference_of_products(m, s - x3, w, y), v * zz, w * zzz};
    }

    // What an addition of distinct points met instead.
    struct Met {
        bool equal, opposite;
    };

    // Adds `p` in the lanes that do not `skip`, where neither is infinity. If the two were equal, the caller must put 2p in
    // place of the result; if they were opposite, infinity, which this addition does not take next time. 8 products, 2
    // squares.
    ZK_INLINE Met add_distinct(const Affine<F>& p, bool skip) {
        const F pp_root = p.x * zz - x;
        const F r = p.y * zzz - y;
        const bool same_x = pp_root.is_zero(), same_y = r.is_zero();
        // A lane that skips multiplies by 1 and keeps x and y.
        const F pp = F::one().or_else(skip, pp_root.squared());
        const F ppp = F::one().or_else(skip, pp_root * pp);
        const F q = x * pp;
        x = q.or_else(skip, r.squared() - ppp - q.doubled());
        const F y3 = F::difference_of_products(r, q - x, y, ppp);
        y = y.or_else(skip, y3);
        zz = zz * pp;
        zzz = zzz * ppp;
        return Met{same_x && same_y && !skip, same_x && !same_y && !skip};
    }

    // Adds any point, 12 products and 2 squares.
    __device__ __noinline__ void add(const Xyzz& p) {
        const F u1 = x * p.zz;
        const F s1 = y * p.zzz;
        const F pp_root = p.x * zz - u1;
        const F r = p.y * zzz - s1;
        const bool none = is_infinity(), other_none = p.is_infinity();
        const bool same_x = pp_root.is_zero(), same_y = r.is_zero();
        const bool same = same_x && same_y && !none && !other_none;
        const F pp = pp_root.squared();
        const F ppp = pp_root * pp;
        const F q = u1 * pp;
        Xyzz sum;
        sum.x = r.squared() - ppp - q.doubled();
        sum.y = F::difference_of_products(r, q - sum.x, s1, ppp);
        sum.zz = zz * p.zz * pp;
        sum.zzz = zzz * p.zzz * ppp;
        sum = p.or_else(none, or_else(other_none, sum));
        if (any_lane(same)) sum = doubled().or_else(same, sum);
        *this = sum;
    }

    // x = X/ZZ, y = Y/ZZZ from 1/ZZZ (anything for infinity, which becomes all zero).
    ZK_INLINE Affine<F> to_affine(const F& inverse_zzz) const {
        const F inverse_z = inverse_zzz * zz;
        const F inverse_zz = inverse_z.squared();
        const bool none = is_infinity();
        return Affine<F>{F::zero().or_else(none, x * inverse_zz), F::zero().or_else(none, y * inverse_zzz)};
    }
};
