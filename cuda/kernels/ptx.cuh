// Multi-word arithmetic on 32-bit words: one PTX instruction each, chained by the carry flag.
//
// A chain is a run of these calls with nothing between them that sets the flag. The compiler fuses each pair
// mad_lo_cc / madc_hi_cc on the same factors into one IMAD.WIDE.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define ZK_INLINE __device__ __forceinline__
#else
#define ZK_INLINE inline
#endif

namespace ptx {

#ifdef __CUDACC__

#define ZK_OP2(name, instruction)                                                                                      \
    ZK_INLINE uint32_t name(uint32_t a, uint32_t b) {                                                                  \
        uint32_t r;                                                                                                    \
        asm volatile(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));                                           \
        return r;                                                                                                      \
    }
#define ZK_OP3(name, instruction)                                                                                      \
    ZK_INLINE uint32_t name(uint32_t a, uint32_t b, uint32_t c) {                                                      \
        uint32_t r;                                                                                                    \
        asm volatile(instruction " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));                               \
        return r;                                                                                                      \
    }

// `c` after the operation's name: takes the carry in. `_cc` at the end: leaves a carry out.
ZK_OP2(add_cc, "add.cc.u32")
ZK_OP2(addc_cc, "addc.cc.u32")
ZK_OP2(addc, "addc.u32")
ZK_OP2(sub_cc, "sub.cc.u32")
ZK_OP2(subc_cc, "subc.cc.u32")
ZK_OP2(subc, "subc.u32")
ZK_OP3(mad_lo_cc, "mad.lo.cc.u32")
ZK_OP3(madc_lo_cc, "madc.lo.cc.u32")
ZK_OP3(madc_hi_cc, "madc.hi.cc.u32")
ZK_OP3(madc_hi, "madc.hi.u32")

#undef ZK_OP2
#undef ZK_OP3

ZK_INLINE uint32_t mul_lo(uint32_t a, uint32_t b) { return a * b; }
ZK_INLINE uint32_t mul_hi(uint32_t a, uint32_t b) { return __umulhi(a, b); }

#else

// For the host the flag is a variable, so that field and transform code can be tested without a device.
inline thread_local uint32_t carry_flag = 0;

inline uint32_t set_carry(uint64_t sum) {
    carry_flag = static_cast<uint32_t>(sum >> 32) & 1;
    return static_cast<uint32_t>(sum);
}
inline uint32_t mul_lo(uint32_t a, uint32_t b) { return a * b; }
inline uint32_t mul_hi(uint32_t a, uint32_t b) { return static_cast<uint32_t>((uint64_t(a) * b) >> 32); }
inline uint32_t add_cc(uint32_t a, uint32_t b) { return set_carry(uint64_t(a) + b); }
inline uint32_t addc_cc(uint32_t a, uint32_t b) { return set_carry(uint64_t(a) + b + carry_flag); }
inline uint32_t addc(uint32_t a, uint32_t b) { return a + b + carry_flag; }
inline uint32_t sub_cc(uint32_t a, uint32_t b) { return set_carry(uint64_t(a) - b); }
inline uint32_t subc_cc(uint32_t a, uint32_t b) { return set_carry(uint64_t(a) - b - carry_flag); }
inline uint32_t subc(uint32_t a, uint32_t b) { return a - b - carry_flag; }
inline uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return set_carry(uint64_t(a * b) + c); }
inline uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return set_carry(uint64_t(a * b) + c + carry_flag); }
inline uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c) { return set_carry(uint64_t(mul_hi(a, b)) + c + carry_flag); }
inline uint32_t madc_hi(uint32_t a, uint32_t b, uint32_t c) { return mul_hi(a, b) + c + carry_flag; }

#endif

}  // namespace ptx
