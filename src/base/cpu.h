/* What the processor can do. Built without ISA flags, so that it runs anywhere. */
#ifndef PH_BASE_CPU_H
#define PH_BASE_CPU_H

#include "phloem/status.h"

enum ph_isa { PH_ISA_REF, PH_ISA_AVX2, PH_ISA_AVX512, PH_ISA_COUNT };

/* The best ISA that processor, operating system and this build support, lowered (never raised) by
 * PHLOEM_ISA=ref|avx2|avx512; PH_ERROR_USAGE for another word or one that this machine cannot run. */
ph_status ph__cpu_isa(enum ph_isa *isa_out);
const char *ph__isa_name(enum ph_isa isa);

#endif
