/* What the processor can do. Built without ISA flags, so that it runs anywhere. */
#ifndef PH_BASE_CPU_H
#define PH_BASE_CPU_H

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

enum ph__isa { PH_ISA_REF, PH_ISA_AVX2, PH_ISA_AVX512, PH_ISA_COUNT };

/* The best ISA that processor, operating system and this build support, lowered (never raised) by
 * PHLOEM_ISA=ref|avx2|avx512; PH_ERROR_USAGE for another word or one that this machine cannot run. */
ph_status ph__cpu_isa(enum ph__isa *isa_out);
const char *ph__isa_name(enum ph__isa isa);

/* Whether processor and operating system run AVX-512's products of bfloat16. */
bool ph__cpu_has_bf16(void);

/* Processors that this process may keep busy: its affinity mask, limited by the cgroups' quota rounded up;
 * >= 1. */
size_t ph__cpu_count(void);

/* What the last cache that a core has for itself holds; 1 MiB where that is not known. */
size_t ph__cpu_own_cache_bytes(void);

/* The calling thread's floating-point control: rounding, traps and treatment of subnormal numbers, without
 * the sticky exception flags, which setting it leaves as they are. A team runs its tasks with the control of
 * the thread that calls ph__parallel_for. 0 where the processor has none. */
uint32_t ph__cpu_float_control(void);
void ph__cpu_set_float_control(uint32_t control);

/* From enter to leave this thread rounds to nearest and traps nothing, whatever its caller has chosen; then
 * everything is as it was, exception flags included. Where subnormal numbers are zero, results and operands
 * are: they cost a hundred cycles each. Pairs may be nested. */
void ph__cpu_float_enter(bool are_subnormals_zero, fenv_t *former_out);
void ph__cpu_float_leave(const fenv_t *former);

#endif
