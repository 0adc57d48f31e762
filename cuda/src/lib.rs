//! CUDA kernels and the prover on them.
