/* Requests of the Open Inference Protocol on either wire: what is read is written, and what is written is
 * read again and written to the same bytes. Tensors of a request that is read have the values that they say.
 *
 * An input's first byte chooses the wire and the message, or one of REST's own:
 * - an infer's body: the second byte is the size of the header's value, which follows; 0: no header. Either
 * as it is, or packed by gzip or deflate;
 * - any other call: the method, the path up to a line's end, and the body. */
#include <stdlib.h>
#include <string.h>

#include "base/file/compress.h"
#include "serve/wire/rest.h"
#include "serve/wire/wire_tensor.h"
#include "support/fuzz_support.h"

union request {
    struct ph__oip_infer_request infer;
    struct ph__oip_request other;
};

static const struct ph__message *const messages[] = {&ph__oip_infer_request_message, &ph__oip_empty_message,
    &ph__oip_model_message, &ph__oip_service_message, &ph__oip_index_request_message, &ph__oip_load_message,
    &ph__oip_trace_request_message};
enum { NUM_MESSAGES = sizeof messages / sizeof *messages, MAX_UNPACKED = 1 << 14 };

static ph_status read_message(const struct ph__message *message, bool is_json, const void *bytes, size_t size,
    struct ph__arena *arena, union request *request)
{
    return is_json ? ph__message_from_json(message, bytes, size, arena, request)
                   : ph__message_from_protobuf(message, bytes, size, arena, request);
}

static void write_message(
    const struct ph__message *message, bool is_json, const union request *request, struct ph__buffer *to)
{
    if (is_json)
        ph__message_to_json(message, request, to);
    else
        ph__message_to_protobuf(message, request, to);
    fuzz_require(!to->has_failed);
}

static volatile double sum_of_values; /* keeps the compiler from leaving visits out */

/* Looks at every value of a tensor. */
static void visit(const struct ph__tensor *tensor)
{
    double sum = 0;
    for (size_t i = 0; i < tensor->count; i++) {
        if (ph__tensor_is_text(tensor)) {
            const struct ph__bytes text = ph__tensor_text(tensor, i);
            for (size_t c = 0; c < text.size; c++)
                sum += text.bytes[c];
        } else {
            sum += ph__tensor_real(tensor, i);
            if (ph__tensor_is_integer(tensor))
                sum += (double)ph__tensor_integer(tensor, i);
        }
    }
    sum_of_values = sum;
}

/* is_rest: an input without bytes of its own has its data in the message. */
static void read_tensors(const struct ph__oip_infer_request *request, bool is_rest, struct ph__arena *arena)
{
    const struct ph__oip_tensor *inputs = request->inputs.items;
    const struct ph__bytes *raw = request->raw.items;
    for (size_t i = 0; i < request->inputs.count; i++) {
        struct ph__tensor tensor;
        const bool is_raw = i < request->raw.count && !(is_rest && raw[i].bytes == NULL);
        if (ph__tensor_read(&inputs[i], is_raw ? &raw[i] : NULL, arena, &tensor) == PH_OK)
            visit(&tensor);
    }
    const struct ph__oip_tensor *outputs = request->outputs.items;
    for (size_t i = 0; i < request->outputs.count; i++)
        (void)ph__rest_wants_binary(request, &outputs[i]);
}

static void read_and_write(const struct ph__message *message, bool is_json, const uint8_t *data, size_t size)
{
    struct ph__arena arena = {0};
    struct ph__buffer first = {0}, second = {0};
    union request request;
    if (read_message(message, is_json, data, size, &arena, &request) == PH_OK) {
        if (message == &ph__oip_infer_request_message)
            read_tensors(&request.infer, false, &arena);
        write_message(message, is_json, &request, &first);
        fuzz_require(read_message(message, is_json, first.bytes, first.size, &arena, &request) == PH_OK);
        write_message(message, is_json, &request, &second);
        fuzz_require(first.size == second.size &&
                     (first.size == 0 || memcmp(first.bytes, second.bytes, first.size) == 0));
    }
    ph__buffer_fini(&first);
    ph__buffer_fini(&second);
    ph__arena_fini(&arena);
}

static void read_body(const uint8_t *data, size_t size)
{
    struct ph__arena arena = {0};
    struct ph__oip_infer_request request;
    char header[256];
    const size_t header_size = size > 0 && data[0] < size ? data[0] : 0;
    if (size > 0) {
        memcpy(header, data + 1, header_size);
        data += 1 + header_size;
        size -= 1 + header_size;
    }
    header[header_size] = '\0';
    const struct ph__bytes body = {(const char *)data, size};
    if (ph__rest_read_infer(body, header_size > 0 ? header : NULL, &arena, &request) == PH_OIP_OK) {
        fuzz_require(request.raw.count == 0 || request.raw.count == request.inputs.count);
        read_tensors(&request, true, &arena);
    }
    ph__arena_fini(&arena);
}

static void read_packed(const uint8_t *data, size_t size)
{
    struct ph__buffer body = {0};
    if (ph__inflate(data, size, MAX_UNPACKED, &body) == PH_OK) {
        fuzz_require(body.size <= MAX_UNPACKED);
        read_body(body.bytes, body.size);
    }
    ph__buffer_fini(&body);
}

/* A path names one call, whose request is read. */
static void read_call(const uint8_t *data, size_t size)
{
    struct ph__arena arena = {0};
    struct ph__oip_request request;
    enum ph__oip_call call = PH_OIP_NUM_CALLS;
    char path[256];
    if (size == 0)
        return;
    const enum ph__rest_method method = data[0] % (PH_REST_POST + 1);
    const struct ph__bytes rest = {(const char *)data + 1, size - 1};
    const char *end = rest.size > 0 ? memchr(rest.bytes, '\n', rest.size) : NULL;
    const size_t path_size = end != NULL ? (size_t)(end - rest.bytes) : rest.size;
    if (path_size >= sizeof path)
        return;
    memcpy(path, rest.bytes, path_size);
    path[path_size] = '\0';
    const struct ph__bytes body = {end != NULL ? end + 1 : NULL, end != NULL ? rest.size - path_size - 1 : 0};
    if (ph__rest_route(method, path, &arena, &call, &request) == PH_OIP_OK) {
        fuzz_require(call < PH_OIP_NUM_CALLS);
        (void)ph__rest_read(call, body, &arena, &request);
    }
    ph__arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {read_body, read_packed, read_call};
    if (size == 0)
        return 0;
    const size_t choice = data[0] / 2 % (NUM_MESSAGES + sizeof readers / sizeof *readers);
    if (choice < NUM_MESSAGES)
        read_and_write(messages[choice], data[0] % 2 == 0, data + 1, size - 1);
    else
        readers[choice - NUM_MESSAGES](data + 1, size - 1);
    return 0;
}
