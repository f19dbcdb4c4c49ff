#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/small_product.inc"
