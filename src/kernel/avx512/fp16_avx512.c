#include "kernel/simd/rows_avx512.h"

#include "kernel/simd/fp16.inc"
