#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/row_product.inc"
