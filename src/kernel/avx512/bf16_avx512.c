#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/bf16.inc"
