#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/embedding_squares.inc"
