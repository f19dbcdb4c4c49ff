#include "bodies.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "figures.h"
#include "phloem/serve.h"
#include "serve/wire/oip_messages.h"

enum { MAX_BODIES = 256 };

#define PEER_TOLERANCE 1e-4F /* of a probability: another library's sums */

static void print(struct ph__buffer *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(struct ph__buffer *text, const char *format, ...)
{
    char part[400];
    va_list arguments;
    va_start(arguments, format);
    ph__buffer_append(text, part, (size_t)vsnprintf(part, sizeof part, format, arguments));
    va_end(arguments);
}

static const struct ph_cell *cells_of(const struct body_options *options, size_t row)
{
    return options->rows->cells + row * SERVE_NUM_COLUMNS;
}

/* Returns the text between two items of a list. */
static const char *comma(size_t index)
{
    return index > 0 ? "," : "";
}

/* ---- lines ---- */

static void print_line(struct ph__buffer *text, const struct ph_cell *cells)
{
    for (size_t i = 0; i < SERVE_NUM_COLUMNS; i++) {
        if (i > 0)
            ph__buffer_append(text, "\t", 1);
        if (i < SERVE_NUM_DENSE)
            print(text, "%lld", (long long)cells[i].integer);
        else
            ph__buffer_append(text, cells[i].text, cells[i].length);
    }
}

/* Makes the tensor `lines`: texts with their lengths before them. */
static struct ph__buffer make_tensor(const struct body_options *options, size_t first)
{
    struct ph__buffer tensor = {0}, line = {0};
    for (size_t row = first; row < first + options->num_rows; row++) {
        ph__buffer_clear(&line);
        print_line(&line, cells_of(options, row));
        ph__buffer_append(&tensor, &(uint32_t){(uint32_t)line.size}, 4);
        ph__buffer_append(&tensor, line.bytes, line.size);
    }
    ph__buffer_fini(&line);
    return tensor;
}

static void make_binary(const struct body_options *options, size_t first, struct load_body *body)
{
    struct ph__buffer tensor = make_tensor(options, first);
    print(&body->bytes, "{");
    if (options->timeout_us > 0)
        print(&body->bytes, "\"parameters\":{\"timeout\":%llu},", (unsigned long long)options->timeout_us);
    print(&body->bytes,
        "\"inputs\":[{\"name\":\"lines\",\"shape\":[%zu],\"datatype\":\"BYTES\",\"parameters\":{"
        "\"binary_data_size\":%zu}}],\"outputs\":[{\"name\":\"probability\",\"parameters\":{\"binary_data\":"
        "true}}]}",
        options->num_rows, tensor.size);
    body->json_bytes = body->bytes.size;
    ph__buffer_append(&body->bytes, tensor.bytes, tensor.size);
    ph__buffer_fini(&tensor);
}

static void make_grpc(const struct body_options *options, size_t first, struct load_body *body)
{
    struct ph__buffer tensor = make_tensor(options, first);
    int64_t shape = (int64_t)options->num_rows;
    struct ph__bytes raw = {(const char *)tensor.bytes, tensor.size};
    struct ph__oip_tensor input = {
        .name = ph__bytes_of("lines"), .datatype = ph__bytes_of("BYTES"), .shape = {&shape, 1}};
    struct ph__oip_tensor output = {.name = ph__bytes_of("probability")};
    const struct ph__oip_infer_request request = {
        .model_name = ph__bytes_of("dlrm"), .inputs = {&input, 1}, .outputs = {&output, 1}, .raw = {&raw, 1}};
    ph__message_to_protobuf(&ph__oip_infer_request_message, &request, &body->bytes);
    ph__buffer_fini(&tensor);
}

/* ---- columns and encoded rows ---- */

static void print_column(
    const struct body_options *options, size_t first, size_t column, struct ph__buffer *text)
{
    const bool is_dense = column < SERVE_NUM_DENSE;
    print(text, "%s{\"name\":\"%c%zu\",\"datatype\":\"%s\",\"shape\":[%zu],\"data\":[", comma(column),
        is_dense ? 'I' : 'C', is_dense ? column + 1 : column - SERVE_NUM_DENSE + 1,
        is_dense ? "INT64" : "BYTES", options->num_rows);
    for (size_t i = 0; i < options->num_rows; i++) {
        const struct ph_cell *cell = cells_of(options, first + i) + column;
        if (is_dense)
            print(text, "%s%lld", comma(i), (long long)cell->integer);
        else
            print(text, "%s\"%.*s\"", comma(i), (int)cell->length, cell->text);
    }
    print(text, "]}");
}

static void make_columns(const struct body_options *options, size_t first, struct load_body *body)
{
    body->is_text = true;
    print(&body->bytes, "{\"inputs\":[");
    for (size_t column = 0; column < SERVE_NUM_COLUMNS; column++)
        print_column(options, first, column, &body->bytes);
    print(&body->bytes, "],\"outputs\":[{\"name\":\"probability\"}]}");
}

static void make_encoded(const struct body_options *options, size_t first, struct load_body *body)
{
    body->is_text = true;
    body->tolerance = PEER_TOLERANCE;
    for (size_t i = 0; i < options->num_rows; i++) {
        print(&body->bytes, i == 0 ? "{\"dense\":[[" : "],[");
        for (size_t k = 0; k < SERVE_NUM_DENSE; k++)
            print(&body->bytes, "%s%.9g", comma(k), (double)options->encoded->dense[first + i][k]);
    }
    for (size_t i = 0; i < options->num_rows; i++) {
        print(&body->bytes, i == 0 ? "]],\"ids\":[[" : "],[");
        for (size_t k = 0; k < SERVE_NUM_SPARSE; k++)
            print(&body->bytes, "%s%lld", comma(k), (long long)options->encoded->ids[first + i][k]);
    }
    print(&body->bytes, "]]}");
}

/* ---- all ---- */

void bodies_make(const struct body_options *options, struct bodies *bodies_out)
{
    static void (*const makers[])(const struct body_options *, size_t, struct load_body *) = {
        make_binary, make_grpc, make_columns, make_encoded};
    bodies_out->count = ph__min(SERVE_NUM_ROWS / options->num_rows, MAX_BODIES);
    bodies_out->items = calloc(bodies_out->count, sizeof *bodies_out->items);
    if (bodies_out->items == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu bodies", bodies_out->count));
    for (size_t i = 0; i < bodies_out->count; i++) {
        struct load_body *body = &bodies_out->items[i];
        const size_t first = i * options->num_rows;
        makers[options->form](options, first, body);
        body->num_scores = options->num_rows;
        for (size_t k = 0; k < 2; k++)
            body->scores[k] = options->scores[k] != NULL ? options->scores[k] + first : NULL;
    }
}

void bodies_fini(struct bodies *bodies)
{
    for (size_t i = 0; i < bodies->count; i++)
        ph__buffer_fini(&bodies->items[i].bytes);
    free(bodies->items);
}

float *bodies_scores(const char *folder, const struct serve_rows *rows)
{
    struct ph_session *session = NULL;
    float *scores = calloc(SERVE_NUM_ROWS, sizeof *scores);
    if (scores == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %d scores", SERVE_NUM_ROWS));
    bench_check(ph_session_open(folder, NULL, &session));
    bench_check(ph_session_score(session, SERVE_NUM_ROWS, rows->cells, scores));
    ph_session_close(session);
    return scores;
}
