/* Features of the processor. Built without ISA flags, so that it runs anywhere. */
#ifndef PH_BASE_CPU_H
#define PH_BASE_CPU_H

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

enum ph__isa { PH_ISA_REF, PH_ISA_AVX2, PH_ISA_AVX512, PH_ISA_COUNT };

/* Gives the best ISA that processor, operating system and this build support, lowered (never raised) by
 * PHLOEM_ISA=ref|avx2|avx512; PH_ERROR_USAGE for another word or an ISA that this machine cannot run. */
ph_status ph__cpu_isa(enum ph__isa *isa_out);
const char *ph__isa_name(enum ph__isa isa);

/* Fills the processor's name as the system tells it, "Intel(R) Xeon(R) Processor @ 2.60GHz", or that of its
 * architecture, cut to the size. */
void ph__cpu_name(char *name_out, size_t size);

/* Tells whether processor and operating system run AVX-512's products of bfloat16. */
bool ph__cpu_has_bf16(void);

/* Tells whether processor and operating system run AVX-512's sums of four products of bytes (VNNI). */
bool ph__cpu_has_int8_dot(void);

/* Returns the number of processors that this process may keep busy: its affinity mask, limited by the
 * cgroups' quota rounded up; >= 1. */
size_t ph__cpu_count(void);

/* Returns the size of a core's own last cache; 1 MiB when it is unknown. */
size_t ph__cpu_own_cache_bytes(void);

/* Returns and sets the calling thread's floating-point control: rounding, traps and treatment of subnormal
 * numbers. The sticky exception flags are not part of it; setting leaves them. A team runs its tasks with the
 * control of the thread that calls ph__parallel_for. 0 on a processor without one. */
uint32_t ph__cpu_float_control(void);
void ph__cpu_set_float_control(uint32_t control);

/* Makes this thread round to nearest and trap nothing from enter to leave, whatever its caller has set. Leave
 * restores everything, exception flags included. are_subnormals_zero makes subnormal operands and results
 * zero: they cost a hundred cycles each. Pairs may be nested. */
void ph__cpu_float_enter(bool are_subnormals_zero, fenv_t *former_out);
void ph__cpu_float_leave(const fenv_t *former);

#endif
