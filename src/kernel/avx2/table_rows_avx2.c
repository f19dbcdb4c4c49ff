#include "kernel/simd/rows_avx2.h"

#include "kernel/simd/table_rows.inc"
