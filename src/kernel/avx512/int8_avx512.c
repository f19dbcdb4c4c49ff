#include "kernel/simd/rows_avx512.h"

#include "kernel/simd/int8.inc"
