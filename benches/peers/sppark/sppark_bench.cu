// Side-by-side reference benchmark: sppark (crates.io release) on BLS12-381.
//
// This file is our own code. It contains no sppark or blst source; both are
// used through their include paths and a small host library built from the
// crates.io tarballs (build.sh has the exact
// versions and command lines).
//
// Modes (argv[1]):
//   micro                      instruction and field-multiplication ceilings
//   msm1 LO HI [reps]          G1 MSM, sizes 2^LO..2^HI, points+scalars on GPU
//   msm1h LO HI [reps]         G1 MSM, points and scalars in pinned host memory
//   msm2 LO HI [reps]          G2 MSM, points+scalars on GPU
//   ntt  LO HI [reps]          NTT variants, data on GPU
//   h    LO HI [reps]          Groth16 quotient pipeline (7 transforms), on GPU
//
// Every line that starts with "R," is machine readable:
//   R,<kind>,<log2 n>,<median ms>,<min ms>,<ok|BAD|->

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <ff/bls12-381-fp2.hpp>
#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

typedef jacobian_t<fp_t> point_t;
typedef xyzz_t<fp_t> bucket_t;
typedef bucket_t::affine_t affine_t;
typedef jacobian_t<fp2_t> point2_t;
typedef xyzz_t<fp2_t> bucket2_t;
typedef bucket2_t::affine_t affine2_t;
typedef fr_t scalar_t;

#define SPPARK_DONT_INSTANTIATE_TEMPLATES
#include <msm/pippenger.cuh>
#include <ntt/ntt.cuh>

#define CK(x)                                                                  \
    do {                                                                       \
        cudaError_t e_ = (x);                                                  \
        if (e_ != cudaSuccess) {                                               \
            fprintf(stderr, "%s:%d %s: %s\n", __FILE__, __LINE__, #x,          \
                    cudaGetErrorString(e_));                                   \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

// ---------------------------------------------------------------- randomness

__host__ __device__ static inline uint64_t mix64(uint64_t z)
{
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// uniform integers below r, little-endian 4x64, not in Montgomery form
__global__ void fill_scalars(uint64_t* out, size_t n, uint64_t seed)
{
    const uint64_t r[4] = {0xffffffff00000001ull, 0x53bda402fffe5bfeull,
                           0x3339d80809a1d805ull, 0x73eda753299d7d48ull};
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += step) {
        uint64_t v[4], t = seed ^ mix64(i);
        bool less;
        do {
            for (int j = 0; j < 4; j++)
                v[j] = t = mix64(t + j);
            v[3] >>= 1;
            less = false;
            for (int j = 3; j >= 0; j--) {
                if (v[j] != r[j]) {
                    less = v[j] < r[j];
                    break;
                }
            }
        } while (!less);
        for (int j = 0; j < 4; j++)
            out[4 * i + j] = v[j];
    }
}

// ------------------------------------------------- base points P_i = k_i * G

template<class B, class AH, class BH>
__launch_bounds__(128) __global__
void scale_generator(BH* out, const AH* gen, size_t first, size_t n, uint64_t seed)
{
#ifdef __CUDA_ARCH__
    const uint32_t d = B::degree;
    size_t i = (threadIdx.x + (size_t)blockIdx.x * blockDim.x) / d;
    if (i >= n)
        return;
    typename B::affine_t g = gen[0];
    uint64_t k = mix64(seed + first + i) | 1;
    B acc;
    acc.inf();
    #pragma unroll 1
    for (int b = 63; b >= 0; b--) {
        acc.uadd(acc);
        if ((k >> b) & 1)
            acc.uadd(g);
    }
    out[i] = acc;
#endif
}

// bucket memory layout is X, Y, ZZZ, ZZ
template<class F, class FH>
__launch_bounds__(128) __global__
void normalize(FH* xy, const FH* xyzz, size_t n)
{
#ifdef __CUDA_ARCH__
    const uint32_t d = F::degree;
    size_t i = (threadIdx.x + (size_t)blockIdx.x * blockDim.x) / d;
    if (i >= n)
        return;
    F X = xyzz[4 * i], Y = xyzz[4 * i + 1], ZZZ = xyzz[4 * i + 2], ZZ = xyzz[4 * i + 3];
    F iz3 = ZZZ.reciprocal();
    F iz = iz3 * ZZ;
    F iz2 = iz;
    iz2.sqr();
    F x = X * iz2, y = Y * iz3;
    xy[2 * i] = x;
    xy[2 * i + 1] = y;
#endif
}

template<class B, class F, class A>
static void make_points(typename A::mem_t* d_pts, const void* host_gen, size_t n, uint64_t seed)
{
    typedef typename A::mem_t AH;
    typedef typename B::mem_t BH;
    typedef typename F::mem_t FH;
    const size_t chunk = std::min<size_t>(n, (size_t)1 << 21);
    AH* d_gen;
    BH* d_tmp;
    CK(cudaMalloc(&d_gen, sizeof(AH)));
    CK(cudaMemcpy(d_gen, host_gen, sizeof(AH), cudaMemcpyHostToDevice));
    CK(cudaMalloc(&d_tmp, sizeof(BH) * chunk));
    for (size_t o = 0; o < n; o += chunk) {
        size_t m = std::min(chunk, n - o);
        unsigned grid = (unsigned)((m * B::degree + 127) / 128);
        scale_generator<B, AH, BH><<<grid, 128>>>(d_tmp, d_gen, o, m, seed);
        CK(cudaGetLastError());
        normalize<F, FH><<<grid, 128>>>((FH*)(d_pts + o), (const FH*)d_tmp, m);
        CK(cudaGetLastError());
    }
    CK(cudaDeviceSynchronize());
    CK(cudaFree(d_tmp));
    CK(cudaFree(d_gen));
}

// ------------------------------------------------------------- host reference
//
// The host functions below are deliberately visible in the device pass too:
// that is what makes nvcc instantiate the library's kernel templates. Only
// code that needs the host-side field API is masked.

extern "C" {
const void* blst_p1_generator(void);
const void* blst_p1_affine_generator(void);
const void* blst_p2_generator(void);
const void* blst_p2_affine_generator(void);
void blst_p1_mult(void*, const void*, const unsigned char*, size_t);
void blst_p2_mult(void*, const void*, const unsigned char*, size_t);
bool blst_p1_is_equal(const void*, const void*);
bool blst_p2_is_equal(const void*, const void*);
bool blst_scalar_from_le_bytes(void*, const unsigned char*, size_t);
}

// sum of s_i * k_i, reduced modulo r
static void expected_log(unsigned char out[32], const uint64_t* d_scalars, size_t n, uint64_t seed)
{
    std::vector<uint64_t> s(4 * std::min<size_t>(n, (size_t)1 << 22));
    unsigned __int128 c;
    uint64_t acc[6] = {0, 0, 0, 0, 0, 0};
    for (size_t o = 0; o < n; o += s.size() / 4) {
        size_t m = std::min(s.size() / 4, n - o);
        CK(cudaMemcpy(s.data(), d_scalars + 4 * o, m * 32, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < m; i++) {
            uint64_t k = mix64(seed + o + i) | 1;
            c = 0;
            for (int j = 0; j < 4; j++) {
                c += (unsigned __int128)s[4 * i + j] * k + acc[j];
                acc[j] = (uint64_t)c;
                c >>= 64;
            }
            for (int j = 4; j < 6; j++) {
                c += acc[j];
                acc[j] = (uint64_t)c;
                c >>= 64;
            }
        }
    }
    blst_scalar_from_le_bytes(out, (const unsigned char*)acc, sizeof(acc));
}

struct stats_t {
    double med, min;
};

template<class Fn> static stats_t wall(int reps, Fn fn)
{
    fn();   // warm-up
    std::vector<double> t;
    for (int i = 0; i < reps; i++) {
        CK(cudaDeviceSynchronize());
        auto a = std::chrono::steady_clock::now();
        fn();
        CK(cudaDeviceSynchronize());
        auto b = std::chrono::steady_clock::now();
        t.push_back(std::chrono::duration<double, std::milli>(b - a).count());
    }
    std::sort(t.begin(), t.end());
    return {t[t.size() / 2], t[0]};
}

template<class Fn> static stats_t events(int reps, cudaStream_t st, Fn fn)
{
    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    fn();
    std::vector<double> t;
    for (int i = 0; i < reps; i++) {
        float ms;
        CK(cudaDeviceSynchronize());
        CK(cudaEventRecord(a, st));
        fn();
        CK(cudaEventRecord(b, st));
        CK(cudaEventSynchronize(b));
        CK(cudaEventElapsedTime(&ms, a, b));
        t.push_back(ms);
    }
    std::sort(t.begin(), t.end());
    CK(cudaEventDestroy(a));
    CK(cudaEventDestroy(b));
    return {t[t.size() / 2], t[0]};
}

static void report(const char* kind, int lg, stats_t s, const char* ok)
{
    printf("R,%s,%d,%.3f,%.3f,%s\n", kind, lg, s.med, s.min, ok);
    fflush(stdout);
}

// ------------------------------------------------------------------------ MSM

template<class P, class B, class F, class A>
static void bench_msm(const char* kind, int lo, int hi, int reps, bool host_data, bool g2)
{
    typedef typename A::mem_t AH;
    const uint64_t seed = 0x5eed;
    const size_t nmax = (size_t)1 << hi;
    AH* d_pts;
    uint64_t* d_s;
    CK(cudaMalloc(&d_pts, sizeof(AH) * nmax));
    CK(cudaMalloc(&d_s, 32 * nmax));
    make_points<B, F, A>(d_pts, g2 ? blst_p2_affine_generator() : blst_p1_affine_generator(), nmax, seed);
    fill_scalars<<<1024, 256>>>(d_s, nmax, 0xabcdef);
    CK(cudaDeviceSynchronize());

    A* h_pts = nullptr;
    scalar_t* h_s = nullptr;
    if (host_data) {
        CK(cudaMallocHost((void**)&h_pts, sizeof(AH) * nmax));
        CK(cudaMallocHost((void**)&h_s, 32 * nmax));
        CK(cudaMemcpy((void*)h_pts, d_pts, sizeof(AH) * nmax, cudaMemcpyDeviceToHost));
        CK(cudaMemcpy((void*)h_s, d_s, 32 * nmax, cudaMemcpyDeviceToHost));
    }

    for (int lg = lo; lg <= hi; lg++) {
        size_t n = (size_t)1 << lg;
        P out;
        stats_t st;
        {
            msm_t<B, P, A, scalar_t> msm(nullptr, n);
            // must be typed A, not A::mem_t: with mem_t the library's forwarding
            // overload resolves to itself and never returns
            dev_ptr_t<A> dp((A*)d_pts, n);
            dev_ptr_t<scalar_t> ds((scalar_t*)d_s, n);
            st = wall(reps, [&] {
                RustError e = host_data
                    ? msm.invoke(out, (const A*)h_pts, n, (const scalar_t*)h_s, false)
                    : msm.invoke(out, dp, n, ds, false);
                if (e.code != 0) {
                    fprintf(stderr, "msm failed: %d %s\n", e.code, e.message ? e.message : "");
                    exit(1);
                }
            });
        }
        unsigned char k[32];
        expected_log(k, d_s, n, seed);
        bool ok;
        if (g2) {
            point2_t want;
            blst_p2_mult((void*)&want, blst_p2_generator(), k, 255);
            ok = blst_p2_is_equal((void*)&want, (void*)&out);
        } else {
            point_t want;
            blst_p1_mult((void*)&want, blst_p1_generator(), k, 255);
            ok = blst_p1_is_equal((void*)&want, (void*)&out);
        }
        report(kind, lg, st, ok ? "ok" : "BAD");
    }
    if (host_data) {
        CK(cudaFreeHost((void*)h_pts));
        CK(cudaFreeHost((void*)h_s));
    }
    CK(cudaFree(d_pts));
    CK(cudaFree(d_s));
}

// ------------------------------------------------------------------------ NTT

typedef NTT::InputOutputOrder Ord;
typedef NTT::Direction Dir;
typedef NTT::Type Typ;

static const char* ntt_small_check(stream_t& st)
{
#ifndef __CUDA_ARCH__
    const int lg = 8, n = 1 << lg;
    std::vector<fr_t> a(n), b(n);
    for (int i = 0; i < n; i++)
        a[i] = fr_t((uint64_t)mix64(i));
    fr_t* d;
    CK(cudaMalloc(&d, n * sizeof(fr_t)));
    CK(cudaMemcpy((void*)d, a.data(), n * sizeof(fr_t), cudaMemcpyHostToDevice));
    NTT::Base_dev_ptr(st, d, lg, Ord::NN, Dir::forward, Typ::standard);
    CK(cudaDeviceSynchronize());
    CK(cudaMemcpy((void*)b.data(), d, n * sizeof(fr_t), cudaMemcpyDeviceToHost));
    CK(cudaFree(d));
    fr_t w = forward_roots_of_unity[lg], wi = fr_t::one();
    for (int i = 0; i < n; i++) {
        fr_t s, x = fr_t::one();
        s.zero();
        for (int j = 0; j < n; j++) {
            s += a[j] * x;
            x *= wi;
        }
        if (!(s == b[i]))
            return "BAD";
        wi *= w;
    }
#endif
    return "ok";
}

static void bench_ntt(int lo, int hi, int reps)
{
    const gpu_t& gpu = select_gpu(0);
    stream_t& st = gpu;
    const char* small = ntt_small_check(st);
    fr_t* d;
    CK(cudaMalloc(&d, sizeof(fr_t) << hi));
    struct {
        const char* name;
        Ord o;
        Dir dir;
        Typ t;
    } v[] = {
        {"ntt_fwd_NN", Ord::NN, Dir::forward, Typ::standard},
        {"ntt_fwd_NR", Ord::NR, Dir::forward, Typ::standard},
        {"ntt_fwd_RN", Ord::RN, Dir::forward, Typ::standard},
        {"ntt_inv_NR", Ord::NR, Dir::inverse, Typ::standard},
        {"ntt_cosetfwd_RN", Ord::RN, Dir::forward, Typ::coset},
        {"ntt_cosetinv_NN", Ord::NN, Dir::inverse, Typ::coset},
    };
    for (int lg = lo; lg <= hi; lg++) {
        size_t n = (size_t)1 << lg;
        fill_scalars<<<1024, 256>>>((uint64_t*)d, n, 7);
        CK(cudaDeviceSynchronize());
        for (auto& x : v) {
            stats_t s = events(reps, st, [&] { NTT::Base_dev_ptr(st, d, lg, x.o, x.dir, x.t); });
            report(x.name, lg, s, small);
        }
    }
    CK(cudaFree(d));
}

__launch_bounds__(1024) __global__ void vmul(fr_t* a, const fr_t* b, size_t n)
{
#ifdef __CUDA_ARCH__
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += step) {
        fr_t x = a[i], y = b[i];
        x *= y;
        a[i] = x;
    }
#endif
}

__launch_bounds__(1024) __global__ void vsubmul(fr_t* a, const fr_t* c, fr_t z, size_t n)
{
#ifdef __CUDA_ARCH__
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += step) {
        fr_t x = a[i], y = c[i];
        x -= y;
        x *= z;
        a[i] = x;
    }
#endif
}

static void bench_h(int lo, int hi, int reps)
{
    const gpu_t& gpu = select_gpu(0);
    stream_t& st = gpu;
    fr_t* d[3];
    for (auto& p : d)
        CK(cudaMalloc(&p, sizeof(fr_t) << hi));
    for (int lg = lo; lg <= hi; lg++) {
        size_t n = (size_t)1 << lg;
        for (auto& p : d)
            fill_scalars<<<1024, 256>>>((uint64_t*)p, n, 3);
        fr_t z = fr_t::one();
        CK(cudaDeviceSynchronize());
        stats_t s = events(reps, st, [&] {
            for (auto& p : d) {
                NTT::Base_dev_ptr(st, p, lg, Ord::NR, Dir::inverse, Typ::standard);
                NTT::Base_dev_ptr(st, p, lg, Ord::RN, Dir::forward, Typ::coset);
            }
            vmul<<<gpu.sm_count(), 1024, 0, st>>>(d[0], d[1], n);
            vsubmul<<<gpu.sm_count(), 1024, 0, st>>>(d[0], d[2], z, n);
            NTT::Base_dev_ptr(st, d[0], lg, Ord::NN, Dir::inverse, Typ::coset);
        });
        report("h_pipeline", lg, s, "-");
    }
    for (auto& p : d)
        CK(cudaFree(p));
}

// --------------------------------------------------------- instruction ceilings

enum Op { IMAD_LO, IMAD_HI, IMAD_WIDE, IADD3, DFMA, DADD, WIDE_DFMA, WIDE_IADD, DFMA_IADD,
          WIDE_DFMA_IADD };

template<int OP>
__launch_bounds__(512) __global__ void micro(uint64_t* sink, uint64_t* cyc, int iters, uint32_t a0)
{
    // 8 independent chains per class keep every pipe fed at 16 warps per SM
    uint32_t a = a0 + threadIdx.x, b = a ^ 0x9e3779b9u;
    uint32_t wl[8], wh[8], u[8], lo[8], hi[8];
    double f[8];
    double fa = 1.0 + 1e-9 * a, fb = 1.0 - 1e-9 * b;
    for (int i = 0; i < 8; i++) {
        wl[i] = a * (i + 1);
        wh[i] = b * (i + 3);
        u[i] = b + i;
        lo[i] = a + i;
        hi[i] = b - i;
        f[i] = 1.0 + i;
    }
    __syncthreads();
    long long t0 = clock64();
    #pragma unroll 1
    for (int it = 0; it < iters; it++) {
        #pragma unroll
        for (int r = 0; r < 8; r++) {
            #pragma unroll
            for (int i = 0; i < 8; i++) {
                // the carry pair compiles to one IMAD.WIDE (checked in the SASS); a plain
                // mad.wide with a loop-invariant product would be turned into adds
                if (OP == IMAD_LO)
                    asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(u[i]) : "r"(a), "r"(b));
                if (OP == IMAD_HI)
                    asm volatile("mad.hi.u32 %0, %0, %1, %2;" : "+r"(u[i]) : "r"(a), "r"(b));
                if (OP == IMAD_WIDE || OP == WIDE_DFMA || OP == WIDE_IADD || OP == WIDE_DFMA_IADD)
                    asm volatile("mad.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.u32 %1, %2, %3, %1;"
                                 : "+r"(wl[i]), "+r"(wh[i]) : "r"(u[i]), "r"(b));
                if (OP == IADD3 || OP == WIDE_IADD || OP == DFMA_IADD || OP == WIDE_DFMA_IADD)
                    asm volatile("add.cc.u32 %0, %0, %1;\n\taddc.u32 %1, %1, %0;"
                                 : "+r"(lo[i]), "+r"(hi[i]));
                if (OP == DFMA || OP == WIDE_DFMA || OP == DFMA_IADD || OP == WIDE_DFMA_IADD)
                    asm volatile("fma.rz.f64 %0, %0, %1, %2;" : "+d"(f[i]) : "d"(fa), "d"(fb));
                if (OP == DADD)
                    asm volatile("add.rz.f64 %0, %0, %1;" : "+d"(f[i]) : "d"(fa));
            }
        }
    }
    long long t1 = clock64();
    uint64_t x = 0;
    for (int i = 0; i < 8; i++)
        x ^= wl[i] ^ ((uint64_t)wh[i] << 32) ^ u[i] ^ lo[i] ^ ((uint64_t)hi[i] << 32) ^ (uint64_t)__double_as_longlong(f[i]);
    sink[threadIdx.x + blockIdx.x * blockDim.x] = x;
    if (threadIdx.x == 0)
        cyc[blockIdx.x] = t1 - t0;
}

template<class F, int MODE>     // MODE 0: mul, 1: sqr
__launch_bounds__(256) __global__ void field_rate(F* io, uint64_t* cyc, int iters)
{
#ifdef __CUDA_ARCH__
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    F x = io[2 * i], y = io[2 * i + 1];
    __syncthreads();
    long long t0 = clock64();
    #pragma unroll 1
    for (int k = 0; k < iters; k++) {
        if (MODE == 0) {
            x *= y;
            y *= x;
        } else {
            x.sqr();
            y.sqr();
        }
    }
    long long t1 = clock64();
    io[2 * i] = x;
    io[2 * i + 1] = y;
    if (threadIdx.x == 0)
        cyc[blockIdx.x] = t1 - t0;
#endif
}

template<int OP> static void run_micro(const char* name, int per_step, const cudaDeviceProp& p)
{
    const int iters = 2000, threads = 512, blocks = p.multiProcessorCount;
    uint64_t *sink, *cyc;
    CK(cudaMalloc(&sink, 8ull * threads * blocks));
    CK(cudaMalloc(&cyc, 8ull * blocks));
    float ms;
    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    micro<OP><<<blocks, threads>>>(sink, cyc, iters, 12345);
    CK(cudaDeviceSynchronize());
    CK(cudaEventRecord(a));
    micro<OP><<<blocks, threads>>>(sink, cyc, iters, 12345);
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    CK(cudaEventElapsedTime(&ms, a, b));
    std::vector<uint64_t> c(blocks);
    CK(cudaMemcpy(c.data(), cyc, 8ull * blocks, cudaMemcpyDeviceToHost));
    double cy = (double)*std::max_element(c.begin(), c.end());
    double steps = 64.0 * iters * threads;    // steps per SM
    printf("M,%s,%.2f steps/clk/SM,%.2f instr/clk/SM,%.0f MHz,%.3f ms\n", name, steps / cy,
           steps * per_step / cy, cy / ms / 1e3, ms);
    CK(cudaFree(sink));
    CK(cudaFree(cyc));
}

template<class F, int MODE> static void run_field(const char* name, const cudaDeviceProp& p)
{
    for (int per_sm = 1; per_sm <= 4; per_sm *= 2) {
        const int iters = 4000, threads = 256, blocks = p.multiProcessorCount * per_sm;
        F* io;
        uint64_t* cyc;
        CK(cudaMalloc(&io, sizeof(F) * 2 * threads * blocks));
        CK(cudaMalloc(&cyc, 8ull * blocks));
        fill_scalars<<<256, 256>>>((uint64_t*)io, sizeof(F) * 2 * threads * blocks / 32, 99);
        float ms;
        cudaEvent_t a, b;
        CK(cudaEventCreate(&a));
        CK(cudaEventCreate(&b));
        field_rate<F, MODE><<<blocks, threads>>>(io, cyc, iters);
        CK(cudaDeviceSynchronize());
        CK(cudaEventRecord(a));
        field_rate<F, MODE><<<blocks, threads>>>(io, cyc, iters);
        CK(cudaEventRecord(b));
        CK(cudaEventSynchronize(b));
        CK(cudaEventElapsedTime(&ms, a, b));
        double ops = 2.0 * iters * threads * blocks;
        printf("M,%s,%d blocks/SM x256,%.2f Gop/s,%.3f ms\n", name, per_sm, ops / ms / 1e6, ms);
        CK(cudaFree(io));
        CK(cudaFree(cyc));
    }
}

static void bench_micro()
{
    cudaDeviceProp p;
    CK(cudaGetDeviceProperties(&p, 0));
    printf("device %s, %d SMs, cc %d.%d\n", p.name, p.multiProcessorCount, p.major, p.minor);
    run_micro<IMAD_LO>("imad_lo", 1, p);
    run_micro<IMAD_HI>("imad_hi", 1, p);
    run_micro<IMAD_WIDE>("imad_wide", 1, p);
    run_micro<IADD3>("add_cc+addc", 2, p);
    run_micro<DFMA>("dfma", 1, p);
    run_micro<DADD>("dadd", 1, p);
    run_micro<WIDE_DFMA>("imad_wide+dfma", 2, p);
    run_micro<WIDE_IADD>("imad_wide+2 add", 3, p);
    run_micro<DFMA_IADD>("dfma+2 add", 3, p);
    run_micro<WIDE_DFMA_IADD>("imad_wide+dfma+2 add", 4, p);
    run_field<fp_t, 0>("fp_mul", p);
    run_field<fp_t, 1>("fp_sqr", p);
    run_field<fr_t, 0>("fr_mul", p);
    run_field<fr_t, 1>("fr_sqr", p);
}

int main(int argc, char** argv)
{
    std::string mode = argc > 1 ? argv[1] : "micro";
    int lo = argc > 2 ? atoi(argv[2]) : 20;
    int hi = argc > 3 ? atoi(argv[3]) : lo;
    int reps = argc > 4 ? atoi(argv[4]) : 5;
    if (mode == "micro")
        bench_micro();
    else if (mode == "msm1" || mode == "msm1h")
        bench_msm<point_t, bucket_t, fp_t, affine_t>(mode.c_str(), lo, hi, reps, mode == "msm1h", false);
    else if (mode == "msm2")
        bench_msm<point2_t, bucket2_t, fp2_t, affine2_t>("msm2", lo, hi, reps, false, true);
    else if (mode == "ntt")
        bench_ntt(lo, hi, reps);
    else if (mode == "h")
        bench_h(lo, hi, reps);
    else {
        fprintf(stderr, "unknown mode %s\n", mode.c_str());
        return 2;
    }
    return 0;
}
