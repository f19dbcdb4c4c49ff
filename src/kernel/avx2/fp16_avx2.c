#include "kernel/simd/rows_avx2.h"

#include "kernel/simd/fp16.inc"
