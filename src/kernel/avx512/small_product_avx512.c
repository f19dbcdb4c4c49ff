#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/small_product.inc"
