/* Detects the instruction set and the usable processors, and sets the floating-point control word. */
#include "base/thread/cpu.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory/memory.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <xmmintrin.h>

#define EXCEPTION_FLAGS 0x003fu /* sticky: they record the past and do not steer computations */
#define TO_NEAREST_WITHOUT_TRAPS 0x1f80u
#define FLUSH_TO_ZERO 0x8000u
#define DENORMALS_ARE_ZERO 0x0040u

/* Tells whether the processor converts halves; not every compiler's __builtin_cpu_supports knows that. */
static bool processor_has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

static bool processor_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && processor_has_f16c();
}

static bool processor_has_avx512(void)
{
    return processor_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool ph__cpu_has_bf16(void)
{
    return processor_has_avx512() && __builtin_cpu_supports("avx512bf16");
}

bool ph__cpu_has_int8_dot(void)
{
    return processor_has_avx512() && __builtin_cpu_supports("avx512vnni");
}

static uint32_t read_control(void)
{
    return _mm_getcsr();
}

static void write_control(uint32_t control)
{
    _mm_setcsr(control);
}
#else
static bool processor_has_avx2(void)
{
    return false;
}

static bool processor_has_avx512(void)
{
    return false;
}

bool ph__cpu_has_bf16(void)
{
    return false;
}

bool ph__cpu_has_int8_dot(void)
{
    return false;
}

#define EXCEPTION_FLAGS 0u
#define TO_NEAREST_WITHOUT_TRAPS 0u
#define FLUSH_TO_ZERO 0u
#define DENORMALS_ARE_ZERO 0u

static uint32_t read_control(void)
{
    return 0;
}

static void write_control(uint32_t control)
{
    (void)control;
}
#endif

#ifdef PH_HAVE_AVX2
static const bool build_has_avx2 = true;
#else
static const bool build_has_avx2 = false;
#endif
#ifdef PH_HAVE_AVX512
static const bool build_has_avx512 = true;
#else
static const bool build_has_avx512 = false;
#endif

static const char *const isa_names[PH_ISA_COUNT] = {"ref", "avx2", "avx512"};

const char *ph__isa_name(enum ph__isa isa)
{
    return (unsigned)isa < PH_ISA_COUNT ? isa_names[isa] : "unknown";
}

static enum ph__isa best_isa(void)
{
    if (build_has_avx512 && processor_has_avx512())
        return PH_ISA_AVX512;
    if (build_has_avx2 && processor_has_avx2())
        return PH_ISA_AVX2;
    return PH_ISA_REF;
}

ph_status ph__cpu_isa(enum ph__isa *isa_out)
{
    enum ph__isa best = best_isa();
    const char *wanted = getenv("PHLOEM_ISA");
    if (wanted == NULL || wanted[0] == '\0') {
        *isa_out = best;
        return PH_OK;
    }
    for (int isa = 0; isa < PH_ISA_COUNT; isa++) {
        if (strcmp(wanted, isa_names[isa]) != 0)
            continue;
        if (isa > (int)best)
            return ph_fail(PH_ERROR_USAGE, "PHLOEM_ISA=%s: this machine and build run %s at most", wanted,
                isa_names[best]);
        *isa_out = (enum ph__isa)isa;
        return PH_OK;
    }
    return ph_fail(PH_ERROR_USAGE, "PHLOEM_ISA=%s: not one of ref, avx2, avx512", wanted);
}

/* Counts the processors in the affinity mask, of any size: the kernel refuses a mask smaller than its own. */
static size_t affinity_count(void)
{
    for (size_t processors = 1024; processors <= (size_t)1 << 20; processors *= 2) {
        cpu_set_t *set = CPU_ALLOC(processors);
        if (set == NULL)
            return 1;
        size_t bytes = CPU_ALLOC_SIZE(processors);
        bool is_read = sched_getaffinity(0, bytes, set) == 0;
        int count = is_read ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (size_t)count;
    }
    return 1;
}

void ph__cpu_name(char *name_out, size_t size)
{
    struct utsname system = {0};
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    (void)uname(&system);
    snprintf(name_out, size, "%s", system.machine);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) != 0 || value == NULL)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(name_out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (file != NULL)
        fclose(file);
}

size_t ph__cpu_count(void)
{
    size_t count = affinity_count();
    double quota = 0;
    if (ph__cgroup_cpu_quota("", &quota) && quota < (double)count)
        count = (size_t)ceil(quota);
    return count > 0 ? count : 1;
}

#define COMMON_OWN_CACHE_BYTES ((size_t)1 << 20)

size_t ph__cpu_own_cache_bytes(void)
{
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? (size_t)bytes : COMMON_OWN_CACHE_BYTES;
}

uint32_t ph__cpu_float_control(void)
{
    return read_control() & ~EXCEPTION_FLAGS;
}

void ph__cpu_set_float_control(uint32_t control)
{
    write_control(control | (read_control() & EXCEPTION_FLAGS));
}

void ph__cpu_float_enter(bool are_subnormals_zero, fenv_t *former_out)
{
    feholdexcept(former_out);
    fesetround(FE_TONEAREST);
    write_control(TO_NEAREST_WITHOUT_TRAPS | (are_subnormals_zero ? FLUSH_TO_ZERO | DENORMALS_ARE_ZERO : 0));
}

void ph__cpu_float_leave(const fenv_t *former)
{
    fesetenv(former);
}
