#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/multiply_rows.inc"
