#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/sum_of_squares.inc"
