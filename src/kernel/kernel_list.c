/* The tables of kernels, one per ISA. An ISA that this build lacks gets the table of the next lower one. */
#include "kernel/kernel_list.h"

#define REF_ENTRY(name, avx2, avx512) .name = ph__##name##_ref,
static const struct ph__kernels ref_kernels = {.isa = PH_ISA_REF, PH_TABLE_KERNEL_LIST(REF_ENTRY)};

#ifdef PH_HAVE_AVX2
#define AVX2_ENTRY(name, avx2, avx512) .name = ph__##name##_##avx2,
static const struct ph__kernels avx2_kernels = {.isa = PH_ISA_AVX2, PH_TABLE_KERNEL_LIST(AVX2_ENTRY)};
#else
#define avx2_kernels ref_kernels
#endif

#ifdef PH_HAVE_AVX512
#define AVX512_ENTRY(name, avx2, avx512) .name = ph__##name##_##avx512,
static const struct ph__kernels avx512_kernels = {.isa = PH_ISA_AVX512, PH_TABLE_KERNEL_LIST(AVX512_ENTRY)};
#else
#define avx512_kernels avx2_kernels
#endif

const struct ph__kernels *ph__kernels_for(enum ph__isa isa)
{
    switch (isa) {
    case PH_ISA_AVX512:
        return &avx512_kernels;
    case PH_ISA_AVX2:
        return &avx2_kernels;
    default:
        return &ref_kernels;
    }
}
