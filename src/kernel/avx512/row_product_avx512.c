#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/row_product.inc"
