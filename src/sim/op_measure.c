/* Measures operators: runs a call on operands of its own, which have the same sizes and the same ids. */
#include <stdlib.h>
#include <string.h>

#include "base/memory/absent.h"
#include "base/memory/memory.h"
#include "base/statistics.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"
#include "sim/op_times.h"

enum { WARM_UPS = 2, RUNS = 5, NUMBER_BYTE = 0x3c }; /* 0x3c3c3c3c is .0115 as fp32, 0x3c3c as much as bf16 */

/* Addresses that are asked for at first, and at last: sanitizers leave fewer. Few of them are used. */
#define MOST_BYTES ((size_t)1 << 40)
#define LEAST_BYTES ((size_t)1 << 32)
#define MOST_FILLED ((size_t)64 << 20) /* of one operand; of a larger table the rows that ids name are */

/* A call to measure, and its operands. */
struct trial {
    struct ph__op_scratch *scratch;
    struct ph__call call;
    struct ph__operand operands[2 * PH_MAX_OPERANDS];
    struct ph_parameter parameters[PH_MAX_OPERANDS];
    uint64_t extents[PH_MAX_SYMBOLS];
    double scalars[2 * PH_MAX_OPERANDS];
    uint64_t versions[2 * PH_MAX_OPERANDS];
};

void ph__op_scratch_fini(struct ph__op_scratch *scratch)
{
    ph__memory_free_sparse(scratch->begin, scratch->size);
    *scratch = (struct ph__op_scratch){0};
}

static ph_status reserve(struct ph__op_scratch *scratch)
{
    void *begin = NULL;
    size_t size = MOST_BYTES;
    ph_status status;
    while ((status = ph__memory_alloc_sparse(size, "operands to measure with", &begin)) != PH_OK &&
           size > LEAST_BYTES)
        size /= 2;
    if (status == PH_OK)
        *scratch = (struct ph__op_scratch){begin, size, 0};
    return status;
}

static ph_status take(struct ph__op_scratch *scratch, size_t bytes, void **pointer_out)
{
    if (scratch->begin == NULL)
        PH_TRY(reserve(scratch));
    if (bytes > scratch->size - scratch->used)
        return ph__out_of_memory("an operand of %zu bytes to measure with", bytes);
    *pointer_out = scratch->begin + scratch->used;
    scratch->used += ph__size_align(bytes);
    return PH_OK;
}

static ph_status take_numbers(struct ph__op_scratch *scratch, size_t bytes, void **pointer_out)
{
    PH_TRY(take(scratch, bytes, pointer_out));
    if (bytes <= MOST_FILLED)
        memset(*pointer_out, NUMBER_BYTE, bytes);
    return PH_OK;
}

/* ---- operands ---- */

static size_t bytes_of(const struct ph__operand *operand)
{
    const size_t elements =
        operand->type->kind == PH_JAGGED ? operand->shape.dims[1] : ph_shape_elements(&operand->shape);
    return elements * ph_dtype_size(operand->type->dtype);
}

static ph_status output_bytes(const struct ph__call *call, size_t output, size_t *bytes_out)
{
    *bytes_out = bytes_of(&call->outputs[output]);
    return call->node->op->output_bytes != NULL ? call->node->op->output_bytes(call, output, bytes_out)
                                                : PH_OK;
}

/* Writes the rows that the call's ids name, so that they have memory of their own. */
static void write_named_rows(
    const struct trial *trial, unsigned char *rows, size_t num_rows, size_t row_bytes)
{
    for (size_t k = 0; k < trial->call.num_inputs; k++) {
        const struct ph__operand *operand = &trial->call.inputs[k];
        if (operand->data == NULL || operand->type->dtype != PH_U32)
            continue;
        const uint32_t *ids = operand->data;
        for (size_t i = 0; i < bytes_of(operand) / sizeof *ids; i++)
            if (ids[i] < num_rows)
                memset(rows + ids[i] * row_bytes, NUMBER_BYTE, row_bytes);
    }
}

static ph_status take_rows(struct trial *trial, size_t num_rows, size_t bytes, void **pointer_out)
{
    PH_TRY(take_numbers(trial->scratch, bytes, pointer_out));
    if (bytes > MOST_FILLED && num_rows > 0)
        write_named_rows(trial, *pointer_out, num_rows, bytes / num_rows);
    return PH_OK;
}

static ph_status replace_parameter(struct trial *trial, size_t input, struct ph__operand *operand)
{
    struct ph_parameter *parameter = &trial->parameters[input];
    const size_t num_rows = operand->parameter->shape.dims[0];
    *parameter = *operand->parameter;
    PH_TRY(take_rows(trial, num_rows, parameter->bytes, &parameter->memory));
    if (parameter->data != NULL)
        parameter->data = parameter->memory;
    if (parameter->low != NULL)
        parameter->low = (uint16_t *)parameter->memory + parameter->elements;
    for (size_t i = 0; i < parameter->num_slots; i++) {
        void *data;
        PH_TRY(take_rows(trial, num_rows, parameter->slots[i].elements * sizeof(ph_real), &data));
        parameter->slots[i].data = data;
    }
    operand->parameter = parameter;
    operand->data = parameter->memory;
    operand->version = &parameter->version;
    return PH_OK;
}

static ph_status replace_input(struct trial *trial, size_t input)
{
    struct ph__operand *operand = &trial->call.inputs[input];
    if (operand->parameter != NULL)
        return replace_parameter(trial, input, operand);
    if (operand->scalar != NULL)
        operand->scalar = &trial->scalars[input];
    return ph__memory_is_absent(operand->data)
               ? take_numbers(trial->scratch, bytes_of(operand), &operand->data)
               : PH_OK;
}

static ph_status replace_output(struct trial *trial, size_t output)
{
    struct ph__operand *operand = &trial->call.outputs[output];
    const size_t number = PH_MAX_OPERANDS + output;
    size_t bytes;
    if (operand->scalar != NULL)
        operand->scalar = &trial->scalars[number];
    if (operand->version != NULL)
        operand->version = &trial->versions[number];
    if (operand->data == NULL)
        return PH_OK;
    PH_TRY(output_bytes(&trial->call, output, &bytes));
    PH_TRY(take_numbers(trial->scratch, bytes, &operand->data));
    if (operand->index == NULL)
        return PH_OK;
    void *index;
    PH_TRY(take(trial->scratch,
        (ph__type_index_elements(operand->type, &operand->shape) + 1) * sizeof *operand->index, &index));
    operand->index = index;
    return PH_OK;
}

/* Gives an output that is calculated in place its input's memory. */
static void keep_aliases(struct trial *trial, const struct ph__call *call)
{
    for (size_t k = 0; k < call->num_outputs; k++)
        for (size_t i = 0; i < call->num_inputs; i++)
            if (call->outputs[k].data != NULL && call->outputs[k].data == call->inputs[i].data)
                trial->call.outputs[k].data = trial->call.inputs[i].data;
}

static ph_status prepare(struct trial *trial, const struct ph_backend *backend, const struct ph__call *call)
{
    size_t scratch_bytes = 0;
    trial->call = *call;
    trial->call.backend = backend;
    trial->call.extents = trial->extents;
    memcpy(trial->extents, call->extents, sizeof trial->extents);
    memcpy(trial->operands, call->inputs, call->num_inputs * sizeof *call->inputs);
    memcpy(trial->operands + call->num_inputs, call->outputs, call->num_outputs * sizeof *call->outputs);
    trial->call.inputs = trial->operands;
    trial->call.outputs = trial->operands + call->num_inputs;
    for (size_t i = 0; i < 2 * PH_MAX_OPERANDS; i++)
        trial->scalars[i] =
            i < call->num_inputs && call->inputs[i].scalar != NULL ? *call->inputs[i].scalar : 1;
    for (size_t k = 0; k < call->num_inputs; k++)
        PH_TRY(replace_input(trial, k));
    for (size_t k = 0; k < call->num_outputs; k++)
        PH_TRY(replace_output(trial, k));
    keep_aliases(trial, call);
    if (call->node->op->scratch_bytes != NULL)
        scratch_bytes = call->node->op->scratch_bytes(&trial->call);
    return take(trial->scratch, scratch_bytes, &trial->call.scratch);
}

/* ---- the clock ---- */

static ph_status run(struct trial *trial, ph__op_settle *settle, double *ns_out)
{
    const uint64_t began_ns = ph__clock_ns();
    PH_TRY(trial->call.node->op->run(&trial->call));
    *ns_out = (double)(ph__clock_ns() - began_ns);
    return settle(&trial->call);
}

static ph_status measure(struct trial *trial, ph__op_settle *settle, double *ns_out)
{
    double times[RUNS];
    for (size_t i = 0; i < WARM_UPS; i++)
        PH_TRY(run(trial, settle, &times[0]));
    for (size_t i = 0; i < RUNS; i++)
        PH_TRY(run(trial, settle, &times[i]));
    return ph__median(times, RUNS, ns_out);
}

ph_status ph__op_measure(struct ph__op_scratch *scratch, const struct ph_backend *backend,
    const struct ph__call *call, ph__op_settle *settle, double *ns_out)
{
    struct trial *trial = calloc(1, sizeof *trial);
    fenv_t former;
    if (trial == NULL)
        return ph__out_of_memory("operands to measure with");
    scratch->used = 0;
    trial->scratch = scratch;
    ph_status status = prepare(trial, backend, call);
    ph__cpu_float_enter(true, &former);
    if (status == PH_OK)
        status = measure(trial, settle, ns_out);
    ph__cpu_float_leave(&former);
    free(trial);
    return status;
}

ph_status ph__op_measure_work(struct ph__op_scratch *scratch, const struct ph__op_work *work, double *ns_out)
{
    double times[RUNS];
    scratch->used = 0;
    for (size_t i = 0; i < sizeof work->bytes / sizeof *work->bytes; i++)
        if (work->numbers[i] != NULL)
            PH_TRY(take_numbers(scratch, work->bytes[i], work->numbers[i]));
    for (size_t i = 0; i < WARM_UPS; i++)
        work->run(work->context);
    for (size_t i = 0; i < RUNS; i++) {
        const uint64_t began_ns = ph__clock_ns();
        work->run(work->context);
        times[i] = (double)(ph__clock_ns() - began_ns);
    }
    return ph__median(times, RUNS, ns_out);
}
