#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/add_rows.inc"
