// What the kernels of multi-scalar multiplication share: the order of windows, buckets and entries.
//
// Scalars are read as signed digits of `bits` bits, least significant first; a scalar above r/2 is replaced by r minus
// it and its digits change sign, so that `windows * bits >= 255` suffices and no carry is left. (All bases are of order r.) Window w uses copy
// w / sets of the bases, the bases times 2^(bits * sets * copy), and bucket set w % sets: without copies there is a set
// for each window, with all copies there is one set. Bucket b of a set gathers the points of digits b + 1 and -(b + 1).
#pragma once

#include <cstdint>

#include "ptx.cuh"

namespace msm {

constexpr uint32_t ALL_LANES = 0xffffffff;
// "No bucket" and "no point".
constexpr uint32_t NONE = 0xffffffff;
// Bit 31 of an entry's point: subtract it.
constexpr uint32_t NEGATIVE = 0x80000000;
// Buckets lie in at most so many fine bins, and those in coarse ones.
constexpr uint32_t FINE_BINS = 1 << 14;
constexpr uint32_t FINE_PER_COARSE = 64;
constexpr uint32_t COARSE_BINS = FINE_BINS / FINE_PER_COARSE;

struct Windows {
    // of a digit
    uint32_t bits;
    uint32_t windows;
    uint32_t sets;
    // a bucket's fine bin is its number shifted right by this
    uint32_t fine_shift;
    // multiples of r below this may be added to a scalar of full size
    uint32_t spread;
    // points in each copy of the bases
    uint64_t points;
};

// A point to be added to a bucket, or subtracted from it.
struct alignas(8) Entry {
    uint32_t point;
    uint32_t bucket;
};

}  // namespace msm
