/* The graph: a model is a small function that builds a static graph of operators; training it, planning its
 * memory and running it are passes over that graph and a backend under it.
 *
 *   program    immutable once built: values, operators, named entries (forward, backward, update)
 *   store      what is learnt (phloem/store.h);  state: what entries carry from step to step
 *   workspace  the memory of one batch in flight
 *
 * Building is not thread-safe. A program may be shared by any number of executors; an executor and a
 * workspace are used by one thread at a time. Operators are added with the functions of phloem/op.h. */
#ifndef PHLOEM_GRAPH_H
#define PHLOEM_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"
#include "phloem/store.h"
#include "phloem/team.h"
#include "phloem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_builder;
struct ph_program;
struct ph_backend;
struct ph_executor;
struct ph_workspace;
struct ph_distribution; /* spreads a program over ranks */

/* ---- values ---- */

typedef uint32_t ph_value; /* a handle into its builder and program; 0 is "none" */

enum ph_kind {
    PH_DENSE,       /* an array of fixed or symbolic dimensions */
    PH_JAGGED,      /* dims[0] bags of altogether dims[1] items: items + offsets (bags + 1) */
    PH_SPARSE_ROWS, /* dims[0] distinct slots of a table, ascending, and one row of dims[1] reals each */
    PH_SCALAR,      /* one double on the host: a loss, a learning rate */
    PH_TOKEN,       /* order only */
};

/* A dimension: extent, times the run-time value of a symbol unless symbol is 0. */
struct ph_dim {
    size_t extent;
    uint32_t symbol;
};

#define PH_SYMBOL_BATCH 1u /* B */
#define PH_SYMBOL_IDS 2u   /* N, ids in the batch */
/* In a model that is spread over ranks: */
#define PH_SYMBOL_GLOBAL_BATCH 3u /* G, samples of all ranks together */
#define PH_SYMBOL_REQUESTS 4u     /* R, ids that this rank's shards are asked for */
#define PH_SYMBOL_GLOBAL_IDS 5u   /* M, ids of all ranks' samples together */

struct ph_type {
    enum ph_kind kind;
    enum ph_dtype dtype;
    uint32_t num_dims;
    struct ph_dim dims[PH_MAX_DIMS];
};

/* ---- building ---- */

enum ph_mode { PH_TRAINING, PH_INFERENCE };

/* Precision of a builder's arithmetic. */
enum ph_precision {
    PH_PRECISION_FP32,
    PH_PRECISION_BF16, /* linear layers' weights are rounded to bf16. In training the values between layers
                          are bf16 as well, forward and backward; weights, sums, losses and gradients of
                          parameters stay real. In inference the weights take half the bytes, all else stays
                          real */
};

/* Arithmetic of one product with a learnt weight, X(NAME, name). bf16: as PH_PRECISION_BF16 computes it; the
 * result is real. int8: weights and inputs are rounded to bytes, with a scale an output and a row; sums are
 * exact. */
#define PH_RECIPES(X) \
    X(FP32, fp32)     \
    X(BF16, bf16)     \
    X(INT8, int8)

enum ph_recipe {
#define X(name, text) PH_RECIPE_##name,
    PH_RECIPES(X)
#undef X
        PH_RECIPE_COUNT
};
const char *ph_recipe_name(enum ph_recipe recipe); /* "int8" */

/* A site, the products with one weight, and their recipes. */
struct ph_site_recipe {
    const char *weight; /* name of the parameter; "*": all others, as far as they take the recipe */
    enum ph_recipe forward;
    enum ph_recipe backward; /* of the input's gradient; gradients of weights stay fp32 */
};

/* Creates a builder. Its errors are sticky: after the first one every building call does nothing and returns
 * 0, and ph_builder_finish reports it. So model code needs no checks. They are PH_ERROR_CONFIG for shapes or
 * numbers that do not fit and names declared twice, PH_ERROR_USAGE for calls that do not fit one another, and
 * PH_ERROR_MEMORY. In PH_INFERENCE mode dropout is the identity and batch norm uses its running
 * statistics. */
PH_MUST_CHECK ph_status ph_builder_create(enum ph_mode mode, struct ph_builder **builder_out);
void ph_builder_destroy(struct ph_builder *builder);
enum ph_mode ph_builder_mode(const struct ph_builder *builder);
/* Sets the precision, before the first operator is added; fp32 otherwise. */
void ph_builder_set_precision(struct ph_builder *builder, enum ph_precision precision);
/* Gives sites recipes, copied; all others have fp32. ph_builder_finish fails with PH_ERROR_CONFIG where a
 * program has no such site, or the site cannot take the recipe: int8 takes five outputs at least and sums of
 * at most 66,000 terms; neither goes with PH_PRECISION_BF16. */
void ph_builder_set_recipes(
    struct ph_builder *builder, const struct ph_site_recipe *recipes, size_t num_recipes);
PH_MUST_CHECK ph_status ph_builder_status(const struct ph_builder *builder);
/* Makes the builder fail with this status and reason (as printf's) unless it has failed before: for a model
 * that cannot be built on its features or settings. Returns 0, so that the model's function can return it. */
ph_value ph_builder_fail(struct ph_builder *builder, ph_status status, const char *format, ...)
    PH_PRINTF(3, 4);

/* Begins an entry, to which the following operators belong. Entries run in the order in which they were
 * begun; a later entry may read values of an earlier one. A builder starts in entry "forward". */
void ph_builder_begin_entry(struct ph_builder *builder, const char *name);
/* Prefixes names of parameters and operators with "scope."; scopes nest. */
void ph_builder_push_scope(struct ph_builder *builder, const char *name);
void ph_builder_pop_scope(struct ph_builder *builder);

/* Inputs from the batch; asking twice gives the same value. Optional arrays that a batch lacks read as all 1.
 */
ph_value ph_input_dense(struct ph_builder *builder, size_t num_dense);  /* (B, num_dense) */
ph_value ph_input_ids(struct ph_builder *builder, size_t num_sparse);   /* jagged int64: F*B bags, N ids */
ph_value ph_input_id_weights(struct ph_builder *builder);               /* (N), optional */
ph_value ph_input_labels(struct ph_builder *builder, size_t num_tasks); /* (B,T) */
ph_value ph_input_label_mask(struct ph_builder *builder, size_t num_tasks);   /* (B,T), optional */
ph_value ph_input_teacher(struct ph_builder *builder, size_t num_tasks);      /* (B,T), required */
ph_value ph_input_teacher_mask(struct ph_builder *builder, size_t num_tasks); /* (B,T), optional */
ph_value ph_input_weights(struct ph_builder *builder);                        /* (B), optional */
ph_value ph_input_scalar(struct ph_builder *builder, const char *name); /* set by ph_workspace_set_scalar */

/* Declare learnt values, kept in the store under the scoped name. A table is given one slice a feature;
 * features whose slices have the same name, and then the same number of rows, share it. Slice names are
 * scoped too. */
ph_value ph_parameter(
    struct ph_builder *builder, const char *name, size_t num_dims, const size_t *dims, struct ph_init init);
ph_value ph_table(struct ph_builder *builder, const char *name, size_t num_features,
    const struct ph_table_slice *slices, size_t dim, struct ph_init init);
/* Declares n reals carried from step to step, kept in the state under the scoped name; operators that write
 * it say so. */
ph_value ph_state_value(struct ph_builder *builder, const char *name, size_t n, double initial);

struct ph_type ph_value_type(const struct ph_builder *builder, ph_value value);
const char *ph_value_name(
    const struct ph_builder *builder, ph_value value); /* valid until the builder is finished */

/* Count and return the parameters and tables declared so far, in order. */
size_t ph_builder_num_parameters(const struct ph_builder *builder);
ph_value ph_builder_parameter(const struct ph_builder *builder, size_t index);

/* Keeps a value readable under this name after its entry has ended (ph_workspace_output for dense reals,
 * ph_workspace_scalar for scalars). */
void ph_output(struct ph_builder *builder, const char *name, ph_value value);

/* Gives a value a name by which a scorer can be asked for it (phloem/serve.h): "hidden", what the layer of
 * the logits reads; "embeddings". Names are scoped. What nobody asks for is not computed. Does nothing for
 * value 0; a name that is given twice makes the builder fail with PH_ERROR_CONFIG. */
void ph_name_value(struct ph_builder *builder, const char *name, ph_value value);
size_t ph_builder_num_named_values(const struct ph_builder *builder);
/* Returns named value `index` in the order of their naming; index < ph_builder_num_named_values. The name is
 * valid until the builder is finished. */
ph_value ph_builder_named_value(const struct ph_builder *builder, size_t index, const char **name_out);

/* Adds a loss beside that of the labels (of a teacher, say): training minimises the labels' loss plus
 * `weight` times this scalar, which becomes an output of that name. Does nothing in a builder for
 * inference. */
void ph_add_loss(struct ph_builder *builder, const char *name, ph_value loss, double weight);
size_t ph_builder_num_losses(const struct ph_builder *builder);
/* Returns loss `index` in the order of their addition; index < ph_builder_num_losses. */
ph_value ph_builder_loss(const struct ph_builder *builder, size_t index, double *weight_out);

/* Reverse-mode differentiation as a pass: appends the operators that compute d loss / d wrt[i] to the current
 * entry. loss is a scalar. gradients_out[i] is 0 where the loss does not depend on wrt[i] (or only through
 * ph_stop_gradient); a table's gradient is a sparse_rows value. PH_ERROR_USAGE in a builder for inference,
 * whose operators keep nothing for the backward pass. */
void ph_backward(
    struct ph_builder *builder, ph_value loss, size_t num_wrt, const ph_value *wrt, ph_value *gradients_out);

/* Freezes the graph: removes operators whose results no other operator reads, fuses table gradients into
 * their update where nothing else reads them, and orders the rest. Errors: the builder's first one,
 * PH_ERROR_MEMORY. After success the builder can only be destroyed. */
PH_MUST_CHECK ph_status ph_builder_finish(struct ph_builder *builder, struct ph_program **program_out);

/* ---- programs ---- */

void ph_program_destroy(struct ph_program *program); /* after its executors */
size_t ph_program_num_nodes(const struct ph_program *program, const char *operator_name); /* NULL: all */
/* Products with learnt weights, which can be given recipes, in the order in which the model added them. */
struct ph_site {
    const char *weight;               /* name of the parameter; the program's */
    size_t out_features, in_features; /* its shape */
    bool takes_int8, takes_int8_backward;
};
size_t ph_program_num_sites(const struct ph_program *program);
struct ph_site ph_program_site(const struct ph_program *program, size_t index);
/* Writes the graph as Graphviz text, one cluster an entry, to a file, or to standard output for "-".
 * PH_ERROR_DISK. */
PH_MUST_CHECK ph_status ph_program_write_dot(const struct ph_program *program, const char *path);

/* ---- running ---- */

struct ph_backend_options {
    size_t size;        /* sizeof the struct: phloem/options.h */
    size_t num_threads; /* at most 1024; 0: all processors that this process may use */
    /* Set to let the matrix library use its own threads: bits then depend on their number. Needs
     * PH_TEAM_OPENMP. */
    bool is_fast;
    enum ph_team_kind team; /* 0: PH_TEAM_PTHREAD */
};
/* Creates a backend. PH_ERROR_USAGE: PHLOEM_ISA, in the environment, names an instruction set that this
 * processor lacks; is_fast without PH_TEAM_OPENMP, or PH_TEAM_OPENMP in a build without it;
 * PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_backend_create(
    const struct ph_backend_options *options, struct ph_backend **backend_out);
void ph_backend_destroy(struct ph_backend *backend);
size_t ph_backend_num_threads(const struct ph_backend *backend);
const char *ph_backend_describe(
    const struct ph_backend *backend); /* "avx512, oneDNN 2.6.3, 2 threads (pthread)" */

/* Binds a program to its store and state, in which missing parameters, slots and states are created and
 * initialised. All four are borrowed until the executor is destroyed. PH_ERROR_CONFIG: the store or the state
 * holds one of the names in another shape, or with the slots of another optimizer; PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_executor_create(struct ph_program *program, struct ph_store *store,
    struct ph_state *state, struct ph_backend *backend, struct ph_executor **executor_out);
void ph_executor_destroy(struct ph_executor *executor);

/* Counts the bytes of parameters, slots and states that ph_executor_create would add to the store. */
PH_MUST_CHECK ph_status ph_program_missing_bytes(
    const struct ph_program *program, const struct ph_store *store, uint64_t *bytes_out);

struct ph_memory_usage {
    uint64_t planned_bytes;  /* workspace, with buffers reused */
    uint64_t no_reuse_bytes; /* workspace with a buffer of its own for each value */
    uint64_t live_bytes;     /* most bytes live at once: no plan can do with less */
    uint64_t num_growths;    /* times that a batch outgrew the capacity */
};

/* Creates a workspace for up to batch_size samples with num_ids ids. A larger batch makes the workspace grow
 * (counted). The executor is borrowed until the workspace is destroyed. PH_ERROR_MEMORY. */
PH_MUST_CHECK ph_status ph_workspace_create(
    struct ph_executor *executor, size_t batch_size, size_t num_ids, struct ph_workspace **workspace_out);
void ph_workspace_destroy(struct ph_workspace *workspace);
struct ph_memory_usage ph_workspace_memory(const struct ph_workspace *workspace);

/* Binds the next batch; its arrays are borrowed until the next bind. Seed and step key the random numbers. A
 * batch larger than any before grows the workspace; PH_ERROR_MEMORY: the memory for that is missing, and
 * smaller batches run as before. PH_ERROR_DATA: the batch has other widths than the program. */
PH_MUST_CHECK ph_status ph_workspace_bind(
    struct ph_workspace *workspace, const struct ph_batch *batch, uint64_t seed, uint64_t step);
/* Sets a scalar, which keeps its value until the next call; 0 at first. PH_ERROR_USAGE: the program has no
 * such input. */
PH_MUST_CHECK ph_status ph_workspace_set_scalar(
    struct ph_workspace *workspace, const char *name, double value);

/* Runs one entry. Allocates only in the first run and when a batch makes the workspace grow (counted).
 * PH_ERROR_DATA: an id outside its table. PH_ERROR_USAGE: there is no such entry, or no batch is bound. */
PH_MUST_CHECK ph_status ph_workspace_run(struct ph_workspace *workspace, const char *entry);

/* Return a named output: its scalar, or its array and shape, borrowed until the next run or bind.
 * PH_ERROR_USAGE: the program has no such output, or one of another kind. */
PH_MUST_CHECK ph_status ph_workspace_scalar(
    const struct ph_workspace *workspace, const char *name, double *value_out);
PH_MUST_CHECK ph_status ph_workspace_output(const struct ph_workspace *workspace, const char *name,
    const ph_real **data_out, struct ph_shape *shape_out);

/* ---- profile ---- */

/* Starts or stops measuring each operator (off at first); trace_events > 0 also keeps that many trace events.
 */
PH_MUST_CHECK ph_status ph_executor_profile(struct ph_executor *executor, bool is_on, size_t trace_events);
/* Writes a table, dearest operator first: calls, ms, share, GFLOP/s, GB/s; to a file, or to standard output
 * for "-". PH_ERROR_MEMORY, PH_ERROR_DISK. */
PH_MUST_CHECK ph_status ph_executor_write_profile(const struct ph_executor *executor, const char *path);
/* Writes the trace as Chrome trace JSON. PH_ERROR_USAGE: no events were asked for; PH_ERROR_DISK. */
PH_MUST_CHECK ph_status ph_executor_write_trace(const struct ph_executor *executor, const char *path);
/* Gives FLOPs and bytes, by the operators' cost rules, of all runs since profiling began. */
void ph_executor_cost(const struct ph_executor *executor, double *flops_out, double *bytes_out);

#ifdef __cplusplus
}
#endif
#endif
