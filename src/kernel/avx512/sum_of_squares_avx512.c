#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/sum_of_squares.inc"
