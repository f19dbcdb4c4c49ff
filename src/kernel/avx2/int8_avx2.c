#include "kernel/simd/rows_avx2.h"

#include "kernel/simd/int8.inc"
