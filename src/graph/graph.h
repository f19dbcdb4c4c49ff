/* The graph, shared by builder, passes and executor. Operators see only graph/op.h and struct ph__node. */
#ifndef PH_GRAPH_GRAPH_H
#define PH_GRAPH_GRAPH_H

#include "base/memory/arena.h"
#include "base/text/name_index.h"
#include "graph/op.h"

#define PH_NO_NODE UINT32_MAX
#define PH_NUM_BATCH_SYMBOLS (PH_SYMBOL_GLOBAL_IDS + 1) /* symbols set by the batch, and 0 */
#define PH_MAX_OPERANDS 64                              /* inputs, or outputs, of one node */
#define PH_MAX_SYMBOLS 256                              /* a looked-up history takes three */
#define PH_MAX_ENTRIES 8

enum ph__storage {
    PH_STORAGE_NONE,      /* tokens */
    PH_STORAGE_INPUT,     /* borrowed from the batch; source: enum ph__batch_input */
    PH_STORAGE_PARAMETER, /* store; source: index of the declaration */
    PH_STORAGE_STATE,     /* state; source: index of the state declaration */
    PH_STORAGE_SCALAR,    /* a double of the workspace */
    PH_STORAGE_WORKSPACE, /* planned memory */
};

enum ph__batch_input {
    PH_INPUT_DENSE,
    PH_INPUT_IDS,
    PH_INPUT_ID_WEIGHTS,
    PH_INPUT_LABELS,
    PH_INPUT_LABEL_MASK,
    PH_INPUT_TEACHER,
    PH_INPUT_TEACHER_MASK,
    PH_INPUT_WEIGHTS,
    PH_INPUT_REQUESTED_IDS,
    PH_INPUT_REQUESTED_WEIGHTS,
    PH_INPUT_COUNT
};

struct ph__node {
    const struct ph__op *op;
    const char *name; /* logical and unique: "deep.0.linear" */
    uint64_t stream;  /* ph__hash_name(name), for the rng */
    const void *attributes;
    size_t attributes_size;
    uint32_t num_inputs, num_outputs;
    ph_value *inputs, *outputs;
    uint32_t entry;
    bool is_dead; /* removed by a pass; dropped by finish */
};

struct ph__value_info {
    struct ph_type type;
    const char *name;
    enum ph__storage storage;
    uint32_t producer; /* node, PH_NO_NODE for leaves */
    uint32_t source;   /* see ph__storage */
    ph_value alias_of; /* 0, or the value whose memory this one shares */
    bool is_output;
};

struct ph__state_declaration {
    const char *name;
    size_t elements;
    double initial;
    ph_value value;
};

struct ph__named_value {
    const char *name;
    ph_value value;
};

struct ph__added_loss {
    ph_value loss;
    double weight;
};

struct ph__symbol {
    const char *name;
    uint32_t bound; /* symbol that bounds it; itself for the batch's own symbols */
    size_t factor;  /* capacity: the bound's divided by the divisor, rounded up, times this */
    size_t limit;   /* and never more than this */
    size_t divisor;
};

/* Growable arrays, in the order of creation. values[0] is unused so that 0 can mean none. */
struct ph__graph {
    struct ph__arena arena; /* names, attributes, input and output lists */
    struct ph__node *nodes;
    size_t num_nodes, nodes_capacity;
    struct ph__value_info *values;
    size_t num_values, values_capacity;
    struct ph__declaration *declarations;
    size_t num_declarations, declarations_capacity;
    ph_value *declaration_values; /* beside declarations */
    size_t declaration_values_capacity;
    struct ph__state_declaration *states;
    size_t num_states, states_capacity;
    struct ph__named_value *outputs;
    size_t num_outputs, outputs_capacity;
    struct ph__named_value *named;
    size_t num_named, named_capacity;
    struct ph__named_value *scalar_inputs;
    size_t num_scalar_inputs, scalar_inputs_capacity;
    struct ph_site *sites;
    size_t num_sites, sites_capacity;
    struct ph__added_loss *losses;
    size_t num_losses, losses_capacity;
    struct ph__symbol symbols[PH_MAX_SYMBOLS];
    size_t num_symbols;
    const char *entries[PH_MAX_ENTRIES];
    size_t num_entries;
    ph_value batch_inputs[PH_INPUT_COUNT];
};

/* Names that the nodes of a graph under construction have, so that each gets a unique one in constant time. A
 * node's random numbers follow from its name; its name depends only on the names taken before. */
struct ph__node_names { /* zero-initialised: no names */
    struct ph__name_index index;
    size_t *next_numbers; /* (index.count) first number that was not tried behind each name */
    size_t capacity;
};

struct ph_builder {
    struct ph__graph graph;
    struct ph__node_names node_names;
    struct ph__name_index declared; /* names of the declarations, in their order */
    enum ph_mode mode;
    enum ph_precision precision;
    struct ph_site_recipe *recipes; /* (num_recipes) */
    size_t num_recipes;
    ph_status status;
    char error[512]; /* the first error, recorded again by finish */
    uint32_t entry;
    const char *scope; /* "" or "a.b." */
    const char *scopes[16];
    size_t num_scopes;
};

/* Keep a failure that a callee has recorded; make room for `count` items, false where memory is missing;
 * return "scope.name"; add a value, 0 after failure. For the builder's own files. */
void ph__builder_keep_error(struct ph_builder *builder, ph_status status);
bool ph__builder_reserve(
    struct ph_builder *builder, void **items, size_t *capacity, size_t count, size_t size);
#define PH_ALL_SITES "*" /* as the weight of a recipe */
/* Adds a site unless it is there; its name is the program's. */
void ph__builder_add_site(struct ph_builder *builder, const struct ph_site *site);
/* Returns the recipe of a site's product; one that was not given any is fp32. *is_named_out: it was given to
 * this very site, which must take it. */
enum ph_recipe ph__builder_recipe(
    const struct ph_builder *builder, const char *weight, bool is_backward, bool *is_named_out);
const char *ph__builder_scoped(struct ph_builder *builder, const char *name);
ph_value ph__builder_add_value(struct ph_builder *builder, const struct ph__value_info *info);

struct ph_program {
    struct ph__graph graph; /* live nodes only, grouped by entry in order */
    uint32_t entry_begin[PH_MAX_ENTRIES + 1];
};

/* ---- queries (graph.c) ---- */

void ph__graph_fini(struct ph__graph *graph);
/* Returns the value whose memory `value` uses. */
ph_value ph__graph_root(const struct ph__graph *graph, ph_value value);
/* Finds `name` in a list of named values; 0: not found. */
ph_value ph__find_named(const struct ph__named_value *list, size_t count, const char *name);
/* Counts the live nodes that read each value; an alias's readers count for its source too. malloc'ed, NULL:
 * out of memory. */
uint32_t *ph__graph_count_readers(const struct ph__graph *graph);
/* Returns true when the results of a node are kept until a parameter or state that it reads changes: an
 * operator of that trait which reads nothing else. */
bool ph__graph_keeps_result(const struct ph__graph *graph, const struct ph__node *node);
/* Updates the producers of the outputs of the nodes from `begin` on, after these were reordered. */
void ph__graph_set_producers(struct ph__graph *graph, size_t begin);
/* Moves the nodes from `begin` on, which were appended, before node `index`. */
ph_status ph__graph_move_before(struct ph__graph *graph, size_t index, size_t begin);

void ph__node_names_fini(struct ph__node_names *names);
/* Takes `name`, or the first free one of name.2, name.3 ... It stays in the arena; `name` is borrowed for as
 * long. PH_ERROR_MEMORY. */
ph_status ph__node_names_take(
    struct ph__node_names *names, struct ph__arena *arena, const char *name, const char **taken_out);

/* Operators that differentiation itself needs: the 1 that flows into a loss, and the sum of the gradients
 * that flow back from several readers of a value (dense, scalar or sparse_rows). */
extern const struct ph__op ph__op_seed;
extern const struct ph__op ph__op_accumulate;

/* ---- passes: graph in, graph out ---- */

/* Applies bf16 precision: operands of products become bf16, at their producer if all other readers accept
 * bf16, otherwise by a conversion before the first product that reads them. In precision fp32, those of
 * products whose recipe is bf16, by conversions alone. The last pass that looks at types. */
ph_status ph__pass_precision(struct ph_builder *builder);

/* Finishes as ph_builder_finish does, without fusion: operators stay as the model added them, for conversion
 * of the program into another form. */
ph_status ph__builder_finish_unfused(struct ph_builder *builder, struct ph_program **program_out);

/* ---- memory plan ---- */
struct ph__memory_plan {
    size_t *data_offset;    /* by value: byte offset in the workspace of its data */
    size_t *index_offset;   /* by value: byte offset of offsets or slots; SIZE_MAX: none */
    size_t *value_bytes;    /* by value: from data_offset on, offsets or slots included */
    uint32_t *first, *last; /* by value that has bytes: nodes from when until when it needs them */
    size_t *scratch_offset; /* by node */
    size_t *scratch_bytes;  /* by node */
    struct ph_memory_usage memory;
};
/* Plans with capacities by symbol; backend is for output_bytes. */
ph_status ph__plan_memory(const struct ph_program *program, const struct ph_backend *backend,
    const uint64_t *capacities, struct ph__memory_plan *plan_out);
void ph__memory_plan_fini(struct ph__memory_plan *plan);

/* Returns the class of a value, below num_classes. */
typedef size_t (*ph__value_class)(const struct ph__graph *graph, ph_value value);
/* Sums the bytes that values of each class, and behind them scratch, need while each node runs: bytes_out
 * (num_nodes, num_classes + 1). Memory that a node takes over from its input counts once. */
void ph__memory_plan_sum(const struct ph_program *program, const struct ph__memory_plan *plan,
    size_t num_classes, ph__value_class class_of, uint64_t *bytes_out);

/* Gives the shape of a value's type with these symbol values. */
void ph__type_shape(const struct ph_type *type, const uint64_t *extents, struct ph_shape *shape_out);
size_t ph__type_index_elements(
    const struct ph_type *type, const struct ph_shape *shape); /* elements of `index`; 0: none */

#endif
