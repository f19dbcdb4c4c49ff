#include "kernel/simd/simd_avx512.h"

#include "kernel/simd/rowwise_adagrad.inc"
