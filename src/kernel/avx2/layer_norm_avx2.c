#include "kernel/simd/simd_avx2.h"

#include "kernel/simd/layer_norm.inc"
