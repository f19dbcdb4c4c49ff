#include "serve/server/infer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/compress.h"
#include "base/memory/memory.h"
#include "base/text/number.h"
#include "base/thread/clock.h"
#include "serve/wire/rest.h"

#define DEFAULT_PRIORITY 0x8000
#define SMOOTHING (1.0 / 64) /* weight of the newest lag */
#define LAG_DEVIATIONS 4     /* beyond the mean; RFC 6298 takes as many */
#define NUM_TURNS 4
#define LEAST_PACKED_BYTES 1024 /* of an answer that is worth compressing */

/* ---- life ---- */

struct ph__call_state *ph__call_state_take(struct ph_server *server)
{
    struct ph__call_state *state = server->free_states;
    if (state != NULL)
        server->free_states = state->next;
    else
        state = calloc(1, sizeof *state);
    if (state != NULL)
        *state = (struct ph__call_state){
            .server = server, .begun_ns = ph__clock_ns(), .arena = state->arena, .body = state->body};
    return state;
}

void ph__call_state_give_back(struct ph__call_state *state)
{
    ph__arena_reset(&state->arena);
    ph__buffer_recycle(&state->body);
    state->next = state->server->free_states;
    state->server->free_states = state;
}

struct ph__infer *ph__infer_take(
    struct ph_server *server, enum ph__infer_wire wire, void *front, uint64_t arrived_ns)
{
    struct ph__infer *infer = server->free_infers;
    if (infer != NULL)
        server->free_infers = infer->next;
    else
        infer = calloc(1, sizeof *infer);
    if (infer == NULL)
        return NULL;
    infer->server = server;
    infer->wire = wire;
    infer->front = front;
    infer->served = NULL;
    infer->speculated = NULL;
    infer->arrived_ns = arrived_ns;
    infer->received_ns = ph__clock_ns();
    infer->answered_ns = 0;
    infer->is_traced = false;
    infer->packing = PH_PACKED_NOT;
    infer->has_binary = infer->is_collected = false;
    infer->num_outputs = 0;
    server->num_infers++;
    return infer;
}

/* Tells the speculation what was asked and answered. */
static void offer(const struct ph__infer *infer)
{
    const struct ph__wanted *wanted = &infer->work.wanted;
    const struct ph_session *session = infer->served->session;
    size_t place = 0;
    while (place < wanted->num_outputs && wanted->outputs[place] != PH_OUTPUT_PROBABILITY)
        place++;
    ph__speculator_offer(infer->served->speculator, infer->speculated, infer->request.id,
        place < wanted->num_outputs ? wanted->values[place] : NULL, ph_session_num_tasks(session));
}

void ph__infer_give_back(struct ph__infer *infer)
{
    struct ph_server *server = infer->server;
    if (infer->speculated != NULL && infer->front != NULL && infer->work.code == PH_OIP_OK)
        offer(infer);
    if (infer->served != NULL)
        ph__repository_release(server->repository, infer->served);
    ph__arena_reset(&infer->arena);
    ph__buffer_recycle(&infer->body);
    ph__buffer_recycle(&infer->answer);
    ph__buffer_recycle(&infer->numbers);
    infer->front = NULL;
    infer->next = server->free_infers;
    server->free_infers = infer;
    server->num_infers--;
}

/* ---- reading ---- */

/* Reads the tensors of a request. Raw bytes stand in the order of the inputs; over gRPC all inputs have them
 * or none. */
static enum ph__oip_code read_tensors(struct ph__infer *infer, struct ph__tensor **tensors_out)
{
    const struct ph__oip_infer_request *request = &infer->request;
    const struct ph__oip_tensor *inputs = request->inputs.items;
    const struct ph__bytes *raw = request->raw.items;
    const size_t count = request->inputs.count;
    struct ph__tensor *tensors = ph__arena_alloc_array(&infer->arena, count, sizeof *tensors);
    if (tensors == NULL)
        return PH_OIP_UNAVAILABLE;
    if (request->raw.count > 0 && request->raw.count != count)
        return ph__oip_fail(
            PH_OIP_INVALID, "%zu inputs have %zu raw_input_contents", count, request->raw.count);
    for (size_t i = 0; i < count; i++) {
        const bool is_raw = raw != NULL && (infer->wire != PH_WIRE_REST || raw[i].bytes != NULL);
        const ph_status status =
            ph__tensor_read(&inputs[i], is_raw ? &raw[i] : NULL, &infer->arena, &tensors[i]);
        if (status != PH_OK)
            return ph__oip_code_of(status);
    }
    *tensors_out = tensors;
    return PH_OIP_OK;
}

/* ---- outputs ---- */

static bool wants_binary(const struct ph__infer *infer, const struct ph__oip_tensor *wanted)
{
    return infer->wire == PH_WIRE_REST && ph__rest_wants_binary(&infer->request, wanted);
}

/* Finds the session's output among those that are computed, or adds it. */
static size_t place_of(size_t *outputs, size_t *num_outputs, size_t output)
{
    size_t place = 0;
    while (place < *num_outputs && outputs[place] != output)
        place++;
    if (place == *num_outputs)
        outputs[(*num_outputs)++] = output;
    return place;
}

/* Chooses what the request names, or what every request gets. */
static enum ph__oip_code choose_outputs(struct ph__infer *infer)
{
    const struct ph__served *served = infer->served;
    const struct ph__oip_tensor *wanted = infer->request.outputs.items;
    const size_t num_named = infer->request.outputs.count;
    const size_t count = num_named > 0 ? num_named : served->num_standard;
    size_t *outputs = ph__arena_alloc_array(&infer->arena, count, sizeof *outputs), num_outputs = 0;
    infer->outputs = ph__arena_alloc_array(&infer->arena, count, sizeof *infer->outputs);
    if (outputs == NULL || infer->outputs == NULL)
        return PH_OIP_UNAVAILABLE;
    for (size_t i = 0; i < count; i++) {
        const struct ph__oip_tensor *named = num_named > 0 ? &wanted[i] : NULL;
        const struct ph__served_output *output =
            named != NULL ? ph__served_find_output(served, named->name) : &served->outputs[i];
        if (output == NULL)
            return ph__oip_fail(PH_OIP_INVALID, "model '%s' has no output '%.*s'", served->model,
                (int)named->name.size, named->name.bytes);
        infer->outputs[i] = (struct ph__infer_output){
            output, place_of(outputs, &num_outputs, output->output), wants_binary(infer, named)};
        infer->has_binary |= infer->outputs[i].is_binary;
    }
    infer->num_outputs = count;
    infer->work.wanted = (struct ph__wanted){.num_outputs = num_outputs, .outputs = outputs};
    return PH_OIP_OK;
}

static enum ph__oip_code reserve_values(struct ph__infer *infer)
{
    struct ph__wanted *wanted = &infer->work.wanted;
    float **values = ph__arena_alloc_array(&infer->arena, wanted->num_outputs, sizeof(float *));
    if (values == NULL)
        return PH_OIP_UNAVAILABLE;
    for (size_t i = 0; i < wanted->num_outputs; i++) {
        const size_t width = ph_session_output_width(infer->served->session, wanted->outputs[i]);
        size_t count;
        if (!ph__size_mul(infer->work.rows.num_rows, width, &count) ||
            (values[i] = ph__arena_alloc_array(&infer->arena, count, sizeof(float))) == NULL)
            return PH_OIP_UNAVAILABLE;
    }
    wanted->values = values;
    return PH_OIP_OK;
}

/* ---- into the queue ---- */

/* Returns a parameter that is an integer from 0 on, also as text; `otherwise` without one. */
static uint64_t integer_parameter(const struct ph__infer *infer, const char *name, uint64_t otherwise)
{
    const struct ph__oip_value *value = ph__oip_find_parameter(&infer->request.parameters, name);
    const bool is_integer =
        value != NULL && (value->choice == PH_OIP_INTEGER || value->choice == PH_OIP_UNSIGNED);
    return is_integer && value->integer >= 0 ? (uint64_t)value->integer : otherwise;
}

/* Returns the time that a request waits for turns of the driving thread, which most requests do not exceed:
 * to be read, collected and sent, and one to spare. At most half of the timeout. */
static uint64_t turns_ns(const struct ph_server *server, uint64_t timeout_ns)
{
    const double turns = NUM_TURNS * (server->lag_ns + LAG_DEVIATIONS * server->lag_deviation_ns);
    return turns < (double)timeout_ns / 2 ? (uint64_t)turns : timeout_ns / 2;
}

/* Sets the time by which the request must be scored for its answer to arrive in time. */
static void set_deadline(struct ph__infer *infer, uint64_t timeout_ns)
{
    const uint64_t own_us = integer_parameter(infer, "timeout", infer->served->settings.default_timeout_us);
    if (own_us > 0 && own_us < UINT64_MAX / 1000 && own_us * 1000 < timeout_ns)
        timeout_ns = own_us * 1000;
    infer->work.deadline_ns = UINT64_MAX;
    if (timeout_ns < UINT64_MAX - infer->arrived_ns)
        infer->work.deadline_ns = infer->arrived_ns + timeout_ns - turns_ns(infer->server, timeout_ns);
}

static enum ph__oip_code prepare(struct ph__infer *infer)
{
    const struct ph__served *served = infer->served;
    const size_t count = infer->request.inputs.count;
    struct ph__tensor *tensors = NULL;
    enum ph__oip_code code = read_tensors(infer, &tensors);
    if (code == PH_OIP_OK)
        code = ph__oip_code_of(
            served->speculator != NULL
                ? ph__speculator_prepare(served->speculator, served->session, tensors, count, &infer->arena,
                      &infer->work.rows, &infer->speculated)
                : ph__tensor_rows_match(served->session, tensors, count, &infer->arena, &infer->work.rows));
    if (code == PH_OIP_OK)
        code = choose_outputs(infer);
    return code == PH_OIP_OK ? reserve_values(infer) : code;
}

enum ph__oip_code ph__infer_put(
    struct ph__infer *infer, const struct ph__oip_request *model, uint64_t timeout_ns, uint64_t bytes)
{
    struct ph__repository *repository = infer->server->repository;
    enum ph__oip_code code = ph__repository_find(repository, model->name, model->version, &infer->served);
    if (code != PH_OIP_OK)
        return code;
    const uint64_t priority = integer_parameter(infer, "priority", 0);
    infer->work.priority = priority == 0           ? DEFAULT_PRIORITY
                           : priority < UINT32_MAX ? (uint32_t)priority
                                                   : UINT32_MAX;
    infer->work.bytes = bytes;
    set_deadline(infer, timeout_ns);
    infer->is_traced = ph__tracing_samples(&infer->server->tracing, infer->served->model);
    code = ph__queue_admit(infer->served->queue, bytes, infer->work.deadline_ns);
    if (code == PH_OIP_OK)
        code = prepare(infer);
    if (code == PH_OIP_OK)
        code = ph__queue_put(infer->served->queue, &infer->work);
    if (code != PH_OIP_OK) {
        infer->work.code = code;
        ph__served_book(infer->served, &infer->work, infer->arrived_ns);
    }
    return code;
}

static void note_lag(struct ph_server *server, double lag_ns)
{
    server->lag_deviation_ns += SMOOTHING * (fabs(lag_ns - server->lag_ns) - server->lag_deviation_ns);
    server->lag_ns += SMOOTHING * (lag_ns - server->lag_ns);
}

void ph__infer_collect(struct ph__infer *infer)
{
    infer->is_collected = true;
    infer->answered_ns = ph__clock_ns();
    note_lag(infer->server, (double)(infer->answered_ns - infer->work.times.done));
    ph__served_book(infer->served, &infer->work, infer->arrived_ns);
}

void ph__infer_trace(const struct ph__infer *infer)
{
    const struct ph__request_trace trace = {.model = infer->served->model,
        .version = infer->served->version,
        .arrived_ns = infer->arrived_ns,
        .received_ns = infer->received_ns,
        .work = infer->work.times,
        .answered_ns = infer->answered_ns,
        .sent_ns = ph__clock_ns()};
    if (infer->is_traced && infer->work.code == PH_OIP_OK)
        ph__tracing_add(&infer->server->tracing, &trace);
}

void ph__infer_abandon(struct ph__infer *infer)
{
    infer->front = NULL;
    ph__work_cancel(&infer->work);
}

/* ---- the answer ---- */

/* Gives an output's values (rows, width): those of the work, or one column of them. */
static const float *values_of(struct ph__infer *infer, const struct ph__infer_output *output)
{
    const float *values = infer->work.wanted.values[output->place];
    const size_t num_rows = infer->work.rows.num_rows;
    if (output->of->task == PH_NO_TASK)
        return values;
    const size_t width = ph_session_output_width(infer->served->session, output->of->output);
    if (width == 1)
        return values;
    float *column = ph__arena_alloc_array(&infer->arena, num_rows, sizeof *column);
    for (size_t row = 0; row < num_rows && column != NULL; row++)
        column[row] = values[row * width + output->of->task];
    return column;
}

static void write_numbers(const float *values, size_t count, struct ph__buffer *text)
{
    char digits[PH_NUMBER_TEXT_BYTES];
    ph__buffer_append(text, "[", 1);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            ph__buffer_append(text, ",", 1);
        ph__buffer_append(text, digits, ph__real_write((double)values[i], PH_FLOAT_DIGITS, digits));
    }
    ph__buffer_append(text, "]", 1);
}

/* Makes a tensor of the answer. Its bytes are given, and its JSON where the wire wants that; the JSON's place
 * in the buffer of numbers is set when that no longer moves. */
static bool make_tensor(struct ph__infer *infer, const struct ph__infer_output *output,
    struct ph__oip_tensor *tensor, struct ph__bytes *bytes)
{
    const size_t num_rows = infer->work.rows.num_rows, width = output->of->width;
    const float *values = values_of(infer, output);
    int64_t *shape = ph__arena_alloc_array(&infer->arena, 2, sizeof *shape);
    if (values == NULL || shape == NULL)
        return false;
    shape[0] = (int64_t)num_rows;
    shape[1] = (int64_t)width;
    tensor->name = ph__bytes_of(output->of->name);
    tensor->datatype = ph__bytes_of("FP32");
    tensor->shape = (struct ph__list){shape, 2};
    *bytes = (struct ph__bytes){(const char *)values, num_rows * width * sizeof *values};
    if (infer->wire != PH_WIRE_REST)
        return true;
    if (output->is_binary) {
        struct ph__oip_parameter *size = ph__list_add(&tensor->parameters, sizeof *size, &infer->arena);
        if (size == NULL)
            return false;
        size->key = ph__bytes_of("binary_data_size");
        size->value = (struct ph__oip_value){.choice = PH_OIP_INTEGER, .integer = (int64_t)bytes->size};
        return true;
    }
    const size_t start = infer->numbers.size;
    write_numbers(values, num_rows * width, &infer->numbers);
    tensor->data = (struct ph__bytes){NULL, infer->numbers.size - start};
    return true;
}

static void write_rest(struct ph__infer *infer, struct ph__oip_infer_response *response)
{
    struct ph__oip_tensor *tensors = response->outputs.items;
    const struct ph__bytes *bytes = response->raw.items;
    const char *numbers = (const char *)infer->numbers.bytes;
    for (size_t i = 0; i < infer->num_outputs; i++)
        if (!infer->outputs[i].is_binary) {
            tensors[i].data.bytes = numbers;
            numbers += tensors[i].data.size;
        }
    ph__rest_write(PH_OIP_CALL_INFER, response, &infer->answer);
    infer->json_bytes = infer->answer.size;
    for (size_t i = 0; i < infer->num_outputs; i++)
        if (infer->outputs[i].is_binary)
            ph__buffer_append(&infer->answer, bytes[i].bytes, bytes[i].size);
}

static void write_answer(struct ph__infer *infer)
{
    const size_t count = infer->num_outputs;
    struct ph__oip_stream_response stream = {
        .response = {
            .model_name = ph__bytes_of(infer->served->model),
            .model_version = ph__bytes_of(infer->served->version_text),
            .id = infer->request.id,
            .outputs = {ph__arena_alloc_array(&infer->arena, count, sizeof(struct ph__oip_tensor)), count},
            .raw = {ph__arena_alloc_array(&infer->arena, count, sizeof(struct ph__bytes)), count},
        }};
    struct ph__oip_infer_response *response = &stream.response;
    bool is_made = response->outputs.items != NULL && response->raw.items != NULL;
    for (size_t i = 0; i < count && is_made; i++)
        is_made = make_tensor(infer, &infer->outputs[i], (struct ph__oip_tensor *)response->outputs.items + i,
            (struct ph__bytes *)response->raw.items + i);
    if (!is_made)
        infer->answer.has_failed = true;
    else if (infer->wire == PH_WIRE_REST)
        write_rest(infer, response);
    else if (infer->wire == PH_WIRE_GRPC)
        ph__message_to_protobuf(&ph__oip_infer_response_message, response, &infer->answer);
    else
        ph__message_to_protobuf(&ph__oip_stream_response_message, &stream, &infer->answer);
}

/* Compresses the answer where its client takes that and it is large enough to pay. */
static void pack(struct ph__infer *infer)
{
    const struct ph__buffer plain = infer->answer;
    if (infer->packing == PH_PACKED_NOT || plain.size < LEAST_PACKED_BYTES) {
        infer->packing = PH_PACKED_NOT;
        return;
    }
    ph__buffer_clear(&infer->numbers);
    if (ph__deflate(plain.bytes, plain.size, infer->packing == PH_PACKED_GZIP, &infer->numbers) != PH_OK)
        infer->numbers.has_failed = true;
    infer->answer = infer->numbers;
    infer->numbers = plain;
}

void ph__infer_write(struct ph__infer *infer)
{
    struct ph__work *work = &infer->work;
    if (work->code == PH_OIP_OK)
        write_answer(infer);
    if (work->code == PH_OIP_OK && !infer->answer.has_failed)
        pack(infer);
    if (infer->answer.has_failed || infer->numbers.has_failed) {
        work->code = PH_OIP_UNAVAILABLE;
        snprintf(work->error, sizeof work->error, "out of memory");
    }
}
