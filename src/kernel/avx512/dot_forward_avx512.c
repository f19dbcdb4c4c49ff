#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/dot_forward.inc"
