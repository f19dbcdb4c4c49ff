/* phloem inspect model: the training program of a config. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/verb/inspect.h"
#include "graph/graph.h"
#include "serve/features.h"
#include "train/config/optimizer_groups.h"
#include "train/config/training_program.h"
#include "train/ranks/memory_check.h"

static void print_declaration(
    const struct ph_declaration *declaration, const struct ph_optimizer_settings *settings)
{
    struct ph_optimizer optimizer = ph__optimizer_for(settings, declaration->name, declaration->is_table);
    char shape[64];
    if (declaration->shape.rank == 2)
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
    const struct ph_graph *graph = &learning->program->graph;
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

ph_status cli_inspect_model(const struct cli_source *source, bool is_dot)
{
    struct ph_train_job job = ph_config_job(&source->config);
    struct ph_model_features features;
    struct ph__training_program learning;
    PH_TRY(ph__features_init(source->encoder, &features));
    ph_status status = ph__training_program_build(&job, &features, NULL, &learning);
    ph__features_fini(&features);
    PH_TRY(status);
    if (is_dot)
        status = ph_program_write_dot(learning.program, stdout);
    else
        print_program(&learning, job.optimizer);
    ph_program_destroy(learning.program);
    return status;
}
