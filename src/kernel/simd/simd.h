/* The vectors of the instruction set that a file of this folder is compiled for: PH_SIMD_AVX512 says which
 * (CMakeLists.txt).
 *
 * A file's name says for which sets it is compiled: name_simd.c for each, name_avx2.c and name_avx512.c for
 * that one. */
#ifndef PH_KERNEL_SIMD_H
#define PH_KERNEL_SIMD_H

#ifdef PH_SIMD_AVX512
#include "kernel/simd/rows_avx512.h"
#else
#include "kernel/simd/rows_avx2.h"
#endif

#endif
