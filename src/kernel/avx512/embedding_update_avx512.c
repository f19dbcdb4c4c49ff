#include "kernel/simd/rows_avx512.h"

#include "kernel/simd/embedding_update.inc"
