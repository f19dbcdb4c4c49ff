/* phloem towers DIR [FILE] --towers N --out FILE */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/verb.h"
#include "cli/verb/scoring.h"
#include "plan/tower_partition.h"
#include "plan/tower_similarity.h"
#include "serve/scorer.h"

static const char *const kinds[] = {"coherent", "diverse"}; /* by enum ph__tower_kind */

struct request {
    const char *folder, *path; /* path: rows; NULL: the config's */
    const char *out;
    int64_t num_towers, num_samples;
    enum ph__tower_kind kind;
    struct cli_texts sets;
};

struct towers {
    const struct request *request;
    struct cli_scoring scoring;
    struct ph__arena arena;
    struct ph__tower_similarity sums;
    int64_t num_samples; /* added so far */
    size_t num_features;
    double *similarity; /* (F,F) */
    uint32_t *tower_of; /* (F) */
};

/* ---- similarity ---- */

/* Makes a scorer that computes nothing but the embeddings. */
static ph_status create_scorer(const struct towers *towers, struct ph_scorer **scorer_out)
{
    static const char *const outputs[] = {"embeddings"}; /* (B,F,D) */
    struct ph_scorer_options options = *ph__scorer_options(towers->scoring.scorer);
    options.outputs = outputs;
    options.num_outputs = 1;
    options.has_no_logits = true;
    return ph_scorer_create(&options, scorer_out);
}

static ph_status refuse_model(const struct towers *towers)
{
    return ph_fail(PH_ERROR_USAGE,
        "%s: model '%s' shows no embedding of each feature: train one that does, such as a dlrm without "
        "towers",
        towers->request->folder, ph_model_name(towers->scoring.config.model.settings.kind));
}

/* Adds the samples of a batch, up to the number that is wanted. */
static ph_status add_batch(struct towers *towers, struct ph_scorer *scorer, const struct ph_batch *batch)
{
    const ph_real *logits, *vectors;
    size_t width;
    PH_TRY(ph_scorer_score(scorer, batch, &logits));
    PH_TRY(ph_scorer_output(scorer, 0, &vectors, &width));
    if (width != towers->sums.num_features * towers->sums.dim)
        return refuse_model(towers);
    for (size_t b = 0; b < batch->num_samples && towers->num_samples < towers->request->num_samples; b++) {
        ph__tower_similarity_add(&towers->sums, vectors + b * width);
        towers->num_samples++;
    }
    return PH_OK;
}

static ph_status add_rows(struct towers *towers, struct ph_scorer *scorer, const char *path)
{
    struct ph_batches *batches;
    const struct ph_batch *batch = NULL;
    const struct ph_batches_options options = {
        .size = sizeof options,
        .batch_size = (size_t)towers->scoring.config.train.batch_size,
        .reading.max_bad_rows = towers->scoring.config.data.reading.max_bad_rows,
        .needs_no_labels = true,
    };
    PH_TRY(ph_batches_open(towers->scoring.model.encoder, path, &options, &batches));
    ph_status status = ph_batches_next(batches, &batch);
    while (status == PH_OK && batch != NULL && towers->num_samples < towers->request->num_samples) {
        status = add_batch(towers, scorer, batch);
        if (status == PH_OK)
            status = ph_batches_next(batches, &batch);
    }
    ph_batches_close(batches);
    return status;
}

/* Finds the similarity of all pairs of features. */
static ph_status measure(struct towers *towers, const char *path)
{
    const size_t count = towers->num_features;
    const size_t dim = (size_t)towers->scoring.config.model.settings.embedding_dim;
    struct ph_scorer *scorer = NULL;
    ph_status status = create_scorer(towers, &scorer);
    if (status == PH_ERROR_USAGE) /* the model names no such output */
        return refuse_model(towers);
    PH_TRY(status);
    status = ph__tower_similarity_init(&towers->sums, count, dim, &towers->arena);
    if (status == PH_OK)
        status = add_rows(towers, scorer, path);
    ph_scorer_destroy(scorer);
    PH_TRY(status);
    ph__tower_similarity_finish(&towers->sums, towers->similarity);
    for (size_t i = 0; i < count * count; i++)
        if (isnan(towers->similarity[i]))
            return ph_fail(PH_ERROR_DATA, "%s: the embeddings of '%s' are not all numbers",
                towers->request->folder, ph_encoder_sparse(towers->scoring.model.encoder, i / count)->name);
    return PH_OK;
}

/* ---- output ---- */

static ph_status write_towers(const struct towers *towers, struct ph__writer *writer)
{
    const struct ph_encoder *encoder = towers->scoring.model.encoder;
    PH_TRY(ph__writer_printf(writer, "# kind: %s\nversion: 1\ntowers:\n", kinds[towers->request->kind]));
    for (uint32_t tower = 0; tower < towers->request->num_towers; tower++) {
        const char *before = "[";
        PH_TRY(ph__writer_printf(writer, "  t%" PRIu32 ": ", tower));
        for (size_t f = 0; f < towers->num_features; f++) {
            if (towers->tower_of[f] != tower)
                continue;
            PH_TRY(ph__writer_printf(writer, "%s", before));
            PH_TRY(ph__config_write_text(writer, ph_encoder_sparse(encoder, f)->name));
            before = ", ";
        }
        PH_TRY(ph__writer_printf(writer, "]\n"));
    }
    return PH_OK;
}

static ph_status save(const struct towers *towers)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open_atomic(towers->request->out, &writer));
    return ph__writer_end(writer, write_towers(towers, writer));
}

/* Prints the mean similarity within towers, or between them; nothing where there are no such pairs. */
static void print_mean(const struct towers *towers, bool is_within, const char *what)
{
    const double mean =
        ph__tower_mean_similarity(towers->num_features, towers->similarity, towers->tower_of, is_within);
    if (!isnan(mean))
        printf("mean |cos| %s towers: %.3f\n", what, mean);
}

static void print(const struct towers *towers, const char *path)
{
    const struct request *request = towers->request;
    const size_t num_towers = (size_t)request->num_towers, count = towers->num_features;
    printf("samples: %" PRId64 " of %s\n", towers->num_samples, path);
    print_mean(towers, true, "within");
    print_mean(towers, false, "between");
    printf("features a tower: %zu", count / num_towers);
    printf(count % num_towers == 0 ? "\n" : " to %zu\n", count / num_towers + 1);
    printf("towers: %s (%zu, %s)\n", request->out, num_towers, kinds[request->kind]);
}

/* ---- the verb ---- */

/* Checks that model.towers can name every feature. */
static ph_status check_names(const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < ph_encoder_num_sparse(encoder); i++) {
        const char *name = ph_encoder_sparse(encoder, i)->name;
        if (strpbrk(name, ",|:") != NULL)
            return ph_fail(PH_ERROR_CONFIG,
                "feature '%s' has ',', '|' or ':' in its name, which model.towers cannot name: rename it in "
                "data.fields",
                name);
    }
    return PH_OK;
}

static ph_status allocate(struct towers *towers)
{
    const size_t count = ph_encoder_num_sparse(towers->scoring.model.encoder);
    if ((size_t)towers->request->num_towers > count)
        return ph_fail(PH_ERROR_USAGE,
            "--towers '%" PRId64 "' must be at most %zu, the number of id features",
            towers->request->num_towers, count);
    PH_TRY(check_names(towers->scoring.model.encoder));
    towers->num_features = count;
    towers->similarity = ph__arena_alloc_array(&towers->arena, count * count, sizeof *towers->similarity);
    towers->tower_of = ph__arena_alloc_array(&towers->arena, count, sizeof *towers->tower_of);
    return towers->similarity != NULL && towers->tower_of != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status divide(struct towers *towers)
{
    const struct request *request = towers->request;
    const struct ph_data_paths *paths = &towers->scoring.config.data.paths;
    const char *path = request->path != NULL  ? request->path
                       : paths->valid != NULL ? paths->valid
                                              : paths->train;
    if (path == NULL)
        return ph_fail(PH_ERROR_USAGE, "the config has neither data.valid nor data.train: give FILE");
    PH_TRY(cli_output_spare_model(request->out, request->folder));
    PH_TRY(cli_output_spare_input(request->out, path));
    PH_TRY(allocate(towers));
    PH_TRY(measure(towers, path));
    PH_TRY(ph__tower_partition(towers->num_features, towers->similarity, (size_t)request->num_towers,
        request->kind, towers->tower_of));
    PH_TRY(save(towers));
    if (strcmp(request->out, "-") != 0)
        print(towers, path);
    return PH_OK;
}

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const char *num_towers = NULL, *num_samples = "4096", *kind = kinds[PH_TOWERS_COHERENT];
    const struct cli_flag flags[] = {
        {"--towers", CLI_TEXT, &num_towers, "N", "number of towers (required)"},
        {"--kind", CLI_TEXT, &kind, "KIND",
            "coherent (default): similar features share a tower; diverse: different ones do"},
        {"--samples", CLI_TEXT, &num_samples, "N", "number of samples to compare vectors in; default: 4096"},
        {"--out", CLI_TEXT, &request->out, "FILE",
            "file for the towers, to be named by model.tower_file; -: prints it alone "
            "(required)"},
        {"--set", CLI_TEXTS, &request->sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"towers", "towers runs/mine --towers 2 --out towers.yaml",
        "Divides the features of the model in DIR among towers, by how similar their embeddings are in the\n"
        "samples of FILE (default: data.valid of its config, else data.train).",
        "DIR [FILE]", 1, 2, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    if (*is_done)
        return PH_OK;
    request->folder = arguments.positional[0];
    request->path = arguments.num_positional > 1 ? arguments.positional[1] : NULL;
    if (num_towers == NULL || request->out == NULL)
        return ph_fail(PH_ERROR_USAGE, "towers requires --towers N and --out FILE");
    PH_TRY(cli_count_parse("--towers", num_towers, 1, INT64_MAX, &request->num_towers));
    PH_TRY(cli_count_parse("--samples", num_samples, 1, INT64_MAX, &request->num_samples));
    request->kind = strcmp(kind, kinds[PH_TOWERS_DIVERSE]) == 0 ? PH_TOWERS_DIVERSE : PH_TOWERS_COHERENT;
    return strcmp(kind, kinds[request->kind]) == 0 ? PH_OK : cli_unknown("--kind", kind, kinds, 2);
}

ph_status verb_towers(int argc, char **argv)
{
    struct request request = {0};
    struct towers towers = {.request = &request};
    const struct cli_formats formats = {0};
    bool is_done = false;
    PH_TRY(parse(argc, argv, &request, &is_done));
    if (is_done)
        return PH_OK;
    ph_status status = cli_scoring_open(&towers.scoring, request.folder, &request.sets, &formats);
    if (status == PH_OK)
        status = divide(&towers);
    ph__arena_fini(&towers.arena);
    cli_scoring_close(&towers.scoring);
    return status;
}
