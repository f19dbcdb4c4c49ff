/* The GEMM library of builds without one: every product by plain loops, for the thread-sanitizer preset,
 * whose tool does not see into a library, and the double build. Nothing is prepared; packing is copying. */
#include "kernel/gemm_library.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "kernel/gemm.h"

struct ph__gemm_library {
    size_t num_workers;
};

const char *ph__gemm_library(void)
{
    return "reference";
}

ph_status ph__gemm_library_create(
    size_t num_workers, size_t num_threads, struct ph__gemm_library **library_out)
{
    (void)num_threads;
    struct ph__gemm_library *library = malloc(sizeof *library);
    if (library == NULL)
        return ph__out_of_memory("gemm: the context");
    library->num_workers = num_workers;
    *library_out = library;
    return PH_OK;
}

void ph__gemm_library_destroy(struct ph__gemm_library *library)
{
    free(library);
}

uint64_t ph__gemm_library_creations(const struct ph__gemm_library *library)
{
    (void)library;
    return 0;
}

bool ph__gemm_library_has_bf16(void)
{
    return false;
}

ph_status ph__gemm_library_prepare(struct ph__gemm_library *library, const struct ph__product *product,
    const void *packed, struct ph__prepared *prepared_out)
{
    (void)library;
    (void)packed;
    *prepared_out = (struct ph__prepared){.product = *product};
    return PH_OK;
}

ph_status ph__gemm_library_run(
    const struct ph__prepared *prepared, size_t worker, const struct ph__product_operands *operands)
{
    (void)worker;
    ph__plain_product(&prepared->product, operands);
    return PH_OK;
}

ph_status ph__gemm_library_packed_bytes(
    struct ph__gemm_library *library, const struct ph__packing *packing, size_t *bytes_out)
{
    (void)library;
    *bytes_out = packing->inner * packing->columns * sizeof(ph_real);
    return PH_OK;
}

ph_status ph__gemm_library_pack(
    struct ph__gemm_library *library, const struct ph__packing *packing, const ph_real *matrix, void *packed)
{
    (void)library;
    memcpy(packed, matrix, packing->inner * packing->columns * sizeof *matrix);
    return PH_OK;
}
