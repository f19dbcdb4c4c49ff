#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/embedding_squares.inc"
