#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/weight_product.inc"
