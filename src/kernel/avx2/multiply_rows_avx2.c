#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/multiply_rows.inc"
