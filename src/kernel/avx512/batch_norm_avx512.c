#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/batch_norm.inc"
