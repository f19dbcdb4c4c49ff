#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/weight_product.inc"
