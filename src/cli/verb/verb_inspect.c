/* phloem inspect [data|checkpoint|config|model] PATH */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "cli/config_text.h"
#include "cli/verb.h"
#include "cli/verb/inspect_source.h"
#include "graph/graph.h"
#include "serve/scorer.h"
#include "store/checkpoint_folder.h"
#include "store/checkpoint_layout.h"
#include "tensor/float16.h"
#include "train/config/optimizer_groups.h"
#include "train/config/training_program.h"
#include "train/ranks/memory_check.h"

/* ---- phloem inspect checkpoint ----
 *
 * Reads tensor by tensor, some rows at a time, then compares each file with its seal. Of a folder that
 * several ranks have written, shows whole tensors, and the files that hold them. */

enum { BLOCK_BYTES = 1 << 20 };

static void print_shape(const struct ph_shape *shape)
{
    char text[96] = "(";
    size_t length = 1;
    for (size_t i = 0; i < shape->num_dims; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%zu", i > 0 ? "," : "", shape->dims[i]);
    snprintf(text + length, sizeof text - length, ")");
    printf("%-16s", text);
}

static bool is_real(enum ph_dtype dtype)
{
    return dtype == PH_F32 || dtype == PH_F64 || dtype == PH_F16 || dtype == PH_BF16;
}

static double number_at(enum ph_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case PH_F16:
        return (double)ph__float_from_half(((const uint16_t *)data)[i]);
    case PH_BF16:
        return (double)ph__float_from_bfloat(((const uint16_t *)data)[i]);
    case PH_F32:
        return (double)((const float *)data)[i];
    default:
        return ((const double *)data)[i];
    }
}

/* ---- tensors ---- */

struct statistics {
    size_t count;
    double min, max, sum, squares;
};

static void add_numbers(struct statistics *statistics, enum ph_dtype dtype, const void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double x = number_at(dtype, data, i);
        statistics->min = fmin(statistics->min, x);
        statistics->max = fmax(statistics->max, x);
        statistics->sum += x;
        statistics->squares += x * x;
    }
    statistics->count += count;
}

/* Measures a tensor of reals. Other tensors have no statistics, and are not read. */
static ph_status measure(
    const struct ph__folder *folder, size_t index, struct ph_tensor *tensor, struct statistics *statistics)
{
    const struct ph__area whole = ph__shape_area(&tensor->shape);
    const size_t row_bytes = ph__max(whole.num_columns * ph_dtype_size(tensor->dtype), 1);
    const size_t num_at_once = ph__max(BLOCK_BYTES / row_bytes, 1);
    ph_status status = PH_OK;
    if (!is_real(tensor->dtype) || whole.num_columns == 0)
        return PH_OK;
    void *block = malloc(ph__min(num_at_once, whole.num_rows + 1) * row_bytes);
    if (block == NULL)
        return ph__out_of_memory("rows of tensor %s", tensor->name);
    for (size_t row = 0; row < whole.num_rows && status == PH_OK; row += num_at_once) {
        const struct ph__area rows = {row, ph__min(num_at_once, whole.num_rows - row), 0, whole.num_columns};
        status = ph__folder_read_area(folder, index, &rows, block);
        if (status == PH_OK)
            add_numbers(statistics, tensor->dtype, block, rows.num_rows * rows.num_columns);
    }
    free(block);
    return status;
}

/* Prints min, mean, standard deviation and max. */
static void print_statistics(const struct statistics *statistics)
{
    if (statistics->count == 0)
        return;
    const double mean = statistics->sum / (double)statistics->count;
    const double variance = fmax(0, statistics->squares / (double)statistics->count - mean * mean);
    printf(" %12.5g %12.5g %12.5g %12.5g", statistics->min, mean, sqrt(variance), statistics->max);
}

static ph_status inspect_tensor(const struct ph__folder *folder, size_t index, uint64_t *elements)
{
    struct ph_tensor tensor = ph__folder_tensor(folder, index);
    struct statistics statistics = {.min = INFINITY, .max = -INFINITY};
    PH_TRY(measure(folder, index, &tensor, &statistics));
    printf("%-32s %-4s ", tensor.name, ph_dtype_name(tensor.dtype));
    print_shape(&tensor.shape);
    print_statistics(&statistics);
    printf("\n");
    *elements += ph_shape_elements(&tensor.shape);
    return PH_OK;
}

static ph_status inspect_tensors(const struct ph__folder *folder)
{
    uint64_t elements = 0;
    printf("%-32s %-4s %-16s %12s %12s %12s %12s\n", "tensor", "type", "shape", "min", "mean", "deviation",
        "max");
    for (size_t i = 0; i < ph__folder_num_tensors(folder); i++)
        PH_TRY(inspect_tensor(folder, i, &elements));
    printf("%zu tensors, %" PRIu64 " elements\n", ph__folder_num_tensors(folder), elements);
    return PH_OK;
}

/* ---- files ---- */

static void print_metadata(const struct ph__folder *folder)
{
    struct ph__json_member member = {0};
    while (ph__folder_next_metadata(folder, &member)) {
        const char *text = ph__json_as_text(member.value, NULL);
        if (text != NULL && strcmp(member.key, PH_SAFETENSORS_CHECKSUMS) != 0)
            printf("%s: %s\n", member.key, text);
    }
}

static void print_files(const struct ph__folder *folder)
{
    char bytes[32];
    if (folder->index == NULL)
        return;
    printf("%-40s %8s %12s\n", "file", "tensors", "bytes");
    for (size_t i = 0; i < folder->num_files; i++)
        printf("%-40s %8zu %12s\n", folder->files[i].name,
            ph__safetensors_num_tensors(folder->files[i].tensors),
            ph__bytes_text(ph__safetensors_bytes(folder->files[i].tensors), bytes));
}

/* Checks the seals. A safetensors file of another program needs none; each file of a folder has one. */
static ph_status inspect_seals(const struct ph__folder *folder)
{
    if (folder->index == NULL && !ph__safetensors_is_sealed(folder->files[0].tensors)) {
        printf("seal: none\n");
        return PH_OK;
    }
    PH_TRY(ph__folder_check_seals(folder, 0, 1));
    if (folder->index == NULL)
        printf("seal: valid\n");
    else
        printf("seals: valid, of the index and of %zu files\n", folder->num_files);
    return PH_OK;
}

static ph_status inspect_checkpoint(const char *path)
{
    struct ph__folder *folder;
    PH_TRY(ph__folder_open(path, &folder));
    print_metadata(folder);
    print_files(folder);
    ph_status status = inspect_tensors(folder);
    if (status == PH_OK)
        status = inspect_seals(folder);
    ph__folder_close(folder);
    return status;
}

/* ---- phloem inspect model: the training program of a config ---- */

static void print_declaration(
    const struct ph__declaration *declaration, const struct ph_optimizer_settings *settings)
{
    struct ph_optimizer optimizer = ph__optimizer_for(settings, declaration->name, declaration->is_table);
    char shape[64];
    if (declaration->shape.num_dims == 2)
        snprintf(shape, sizeof shape, "(%zu,%zu)", declaration->shape.dims[0], declaration->shape.dims[1]);
    else
        snprintf(shape, sizeof shape, "(%zu)", declaration->shape.dims[0]);
    printf("%-28s %-9s %-16s %12zu  lr x %g, l2 %g%s\n", declaration->name,
        declaration->is_table ? "table" : "parameter", shape, ph_shape_elements(&declaration->shape),
        optimizer.learning_rate_factor, optimizer.l2, optimizer.is_whole_table ? " on all rows" : "");
    for (size_t i = 0; i < declaration->num_slices && declaration->is_table; i++)
        printf("  %-36s (%zu,%zu)\n", declaration->slices[i].name, declaration->slices[i].num_rows,
            declaration->shape.dims[1]);
}

static void print_program(
    const struct ph__training_program *learning, const struct ph_optimizer_settings *settings)
{
    const struct ph__graph *graph = &learning->program->graph;
    uint64_t elements = 0;
    char bytes[32];
    for (size_t i = 0; i < graph->num_declarations; i++) {
        print_declaration(&graph->declarations[i], settings);
        elements += ph_shape_elements(&graph->declarations[i].shape);
    }
    printf("%" PRIu64 " weights, %s; %zu operators:", elements,
        ph__bytes_text(learning->parameter_bytes, bytes), ph_program_num_nodes(learning->program, NULL));
    for (size_t entry = 0; entry < graph->num_entries; entry++)
        printf(" %s %" PRIu32, graph->entries[entry],
            learning->program->entry_begin[entry + 1] - learning->program->entry_begin[entry]);
    printf("\n");
}

/* Prints parameters, sizes and operators of the training program, or its graph for Graphviz. */
static ph_status inspect_model(const struct cli_source *source, bool is_dot)
{
    struct ph__train_job job = ph__config_job(&source->config);
    struct ph_model_features features;
    struct ph__training_program learning;
    PH_TRY(ph__features_init(source->encoder, &features));
    ph_status status = ph__training_program_build(&job, &features, NULL, &learning);
    ph__features_fini(&features);
    PH_TRY(status);
    if (is_dot)
        status = ph_program_write_dot(learning.program, "-");
    else
        print_program(&learning, job.optimizer);
    ph_program_destroy(learning.program);
    return status;
}

/* ---- the verb ---- */

static const char *const kinds[] = {"data", "checkpoint", "config", "model"};
enum kind { KIND_DATA, KIND_CHECKPOINT, KIND_CONFIG, KIND_MODEL, NUM_KINDS };

/* Recognises a checkpoint by its name: a folder of several ranks is named like a file, maybe with a "/". */
static bool is_checkpoint(const char *path)
{
    return ph__path_ends_in(path, ".safetensors") || ph__path_ends_in(path, ".safetensors/");
}

static ph_status find_kind(const struct cli_arguments *arguments, enum kind *kind_out)
{
    if (arguments->num_positional == 1) {
        const char *path = arguments->positional[0];
        *kind_out = is_checkpoint(path) ? KIND_CHECKPOINT : cli_is_prepared(path) ? KIND_DATA : KIND_MODEL;
        return PH_OK;
    }
    for (size_t i = 0; i < NUM_KINDS; i++) {
        if (strcmp(arguments->positional[0], kinds[i]) == 0) {
            *kind_out = (enum kind)i;
            return PH_OK;
        }
    }
    return cli_unknown("kind", arguments->positional[0], kinds, NUM_KINDS);
}

static ph_status inspect_source(enum kind kind, const char *path, const struct cli_texts *sets, bool is_dot)
{
    struct cli_source source;
    const bool is_data = kind == KIND_DATA;
    ph_status status = (is_data ? cli_source_open_data : cli_source_open)(&source, path, sets);
    if (status == PH_OK)
        status = is_data ? cli_inspect_data(&source) : inspect_model(&source, is_dot);
    cli_source_close(&source);
    return status;
}

ph_status verb_inspect(int argc, char **argv)
{
    struct cli_texts sets = {0};
    bool is_dot = false;
    const struct cli_flag flags[] = {
        {"--dot", CLI_SWITCH, &is_dot, NULL, "model: prints its graph as Graphviz text"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"inspect", "inspect model runs/mine",
        "Shows data, a checkpoint, a config or a model. PATH is, for data, a config or a folder made by\n"
        "phloem train or phloem prepare; for a checkpoint, a file or the folder of its files; for a config,\n"
        "the config; for a model, a config or a folder made by phloem train. Without a kind, PATH tells it.",
        "[data|checkpoint|config|model] PATH", 1, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    enum kind kind;
    PH_TRY(find_kind(&arguments, &kind));
    const char *path = arguments.positional[arguments.num_positional - 1];
    if (kind == KIND_CHECKPOINT)
        return inspect_checkpoint(path);
    if (kind == KIND_CONFIG)
        return cli_config_print(path, &sets);
    return inspect_source(kind, path, &sets, is_dot);
}
