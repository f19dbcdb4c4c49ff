#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/layer_norm.inc"
