/* Operators: each is one constant struct with its rules, in one file of src/op/. The graph uses operators
 * only through this interface, so adding one never touches the graph. */
#ifndef PH_GRAPH_OP_H
#define PH_GRAPH_OP_H

#include "base/thread/parallel.h"
#include "kernel/gemm.h"
#include "kernel/kernel.h"
#include "phloem/graph.h"
#include "store/store.h"

struct ph__node;

/* Traits of an operator. */
enum {
    PH_OP_MIXES_SAMPLES =
        1 << 0, /* a sample's result depends on others (batch norm): for passes that split batches */
    PH_OP_IN_PLACE = 1 << 1,   /* output 0 may take over input 0's memory when no other node reads that */
    PH_OP_ALIAS = 1 << 2,      /* output 0 *is* input 0's memory: no run function */
    PH_OP_HAS_EFFECT = 1 << 3, /* writes a parameter (input 0) or state: never removed, keeps its order */
    PH_OP_ONCE_PER_VERSION = 1 << 4,  /* depends on its inputs alone: where these are parameters and state,
                                         results are kept, and remade when one has changed */
    PH_OP_READS_ROW_FORMATS = 1 << 5, /* reads tables in any row format, as parameter->row_format says */
    PH_OP_CALLS_LIBRARY = 1 << 6,     /* run calls backend->gemm, so no other node may run beside it */
    PH_OP_STOPS_GRADIENT = 1 << 7,    /* for differentiation, its outputs do not depend on its inputs */
    PH_OP_KEEPS_OUTPUTS = 1 << 8, /* adds to its outputs: they stay from run to run, and when memory grows */
    /* Tell how a simulation, where reals are absent, runs the operator. Without one of them: not at all. */
    PH_OP_OF_IDS = 1 << 9, /* as it is: run decides ids, slots or lengths, and leaves absent reals alone */
    PH_OP_SENDS =
        1 << 10, /* run starts messages behind its arithmetic, which a team that runs no task leaves out */
    PH_OP_AWAITS = 1 << 11, /* run waits for other ranks before its arithmetic, likewise */
};

struct ph__call;

/* Runs operators in place of their own functions: takes as long as they would. */
struct ph__simulator {
    ph_status (*run)(const struct ph__simulator *simulator, struct ph__call *call);
};

/* Machine under the graph, the same for all operators of an executor. */
struct ph_backend {
    const struct ph__kernels *kernels;
    struct ph__gemm *gemm;
    struct ph__team *team;
    char description[128];
    const struct ph__simulator *simulator; /* NULL: operators run */
};

/* One operand of a call. Which members are set depends on the value's kind and storage. */
struct ph__operand {
    const struct ph_type *type;
    struct ph_shape
        shape; /* current, or the capacity while planning; jagged: (bags, items); sparse_rows: (slots, dim) */
    void *data; /* dense elements; jagged items; sparse rows (ph_real). NULL: optional input that is absent */
    uint32_t *index;                /* jagged offsets (bags + 1); sparse_rows slots */
    double *scalar;                 /* scalars */
    struct ph_parameter *parameter; /* parameters and tables: data is its memory */
    uint64_t *version;              /* parameters, tables and state: writers increase it */
};

struct ph__run {
    uint64_t seed;
    uint64_t step;
    uint64_t first_sample; /* global index of sample 0 of the batch */
};

struct ph__call {
    const struct ph_backend *backend;
    const struct ph__node *node; /* node->attributes, node->stream */
    const void *attributes;
    const struct ph__run *run;
    struct ph__operand *inputs, *outputs;
    size_t num_inputs, num_outputs;
    void *scratch; /* scratch_bytes() of them */
    uint64_t
        *extents; /* by symbol: an operator that decides a dimension at run time sets its symbol here before
                     it returns, and fills at most the capacity; its outputs' shapes are then computed anew */
};

/* Least work of an operator. Bytes: each operand read or written once. Bytes that are accessed row by row, as
 * ids point, are also counted apart, because memory is slower then. */
struct ph__cost {
    double flops;
    double bytes;           /* all bytes, the following included */
    double gathered_bytes;  /* rows of a table, read once for each id */
    double revisited_bytes; /* rows of the batch's own arrays, read once for each id that points to them */
    double updated_bytes;   /* rows of a table and of its optimizer slots, read and written */
};

/* Arguments of infer, while a node is added: fill `outputs` types, or ph_fail(PH_ERROR_CONFIG, ...) naming
 * node and shapes. */
struct ph__infer {
    struct ph_builder *builder;
    const char *name; /* name of the node */
    const void *attributes;
    size_t num_inputs, num_outputs;
    const struct ph_type *inputs; /* an absent input (0) has kind PH_TOKEN and no dims */
    struct ph_type *outputs;      /* zeroed */
};

/* Arguments of gradient, while differentiating: append nodes, set input_gradients[i] where is_wanted[i]; 0
 * means zero gradient. */
struct ph__gradient {
    struct ph_builder *builder;
    const struct ph__node *node;
    const ph_value *output_gradients; /* 0: nothing flows back through this output */
    const bool *is_wanted;            /* by input */
    ph_value *input_gradients;
};

struct ph__op {
    const char *name;
    unsigned traits;
    /* Bit i: input i, or output i, may be bf16 in place of real; run looks at the operand's type. */
    uint64_t bf16_inputs, bf16_outputs;
    uint64_t bf16_operands; /* subset of bf16_inputs that bf16 precision always converts, whatever their
                               producer */
    ph_status (*infer)(struct ph__infer *infer);
    void (*gradient)(
        struct ph__gradient *gradient); /* NULL: not differentiable (backward fails if asked to) */
    void (*cost)(const struct ph__call *call, struct ph__cost *cost_out);
    size_t (*scratch_bytes)(const struct ph__call *call); /* NULL: none; with shapes at capacity, data NULL */
    /* NULL: the bytes that the type says; otherwise gives the bytes of output `output` (packed layouts) */
    ph_status (*output_bytes)(const struct ph__call *call, size_t output, size_t *bytes_out);
    /* NULL: none. Called once when an executor is made: adds slots to parameters. */
    ph_status (*prepare)(
        const struct ph__node *node, struct ph_store *store, struct ph_parameter *const *parameters);
    /* NULL: none. Bytes of the slots that prepare adds for its parameter, input 0. */
    uint64_t (*slot_bytes)(const struct ph__node *node, const struct ph__declaration *parameter);
    ph_status (*run)(struct ph__call *call);
    /* NULL: none. Called when this node is the only reader of input `fusible_input`, made by `producer`: may
     * turn the node (op, name, inputs, attributes) into the fused operator and return true; the producer then
     * dies. Nodes that fuse adds run before the node. */
    bool (*fuse)(struct ph_builder *builder, struct ph__node *node, const struct ph__node *producer);
    uint32_t fusible_input;
};

/* ---- for operator files ---- */

/* Copies bytes into the program's memory, for attributes that point. NULL after failure. */
void *ph__builder_copy(struct ph_builder *builder, const void *bytes, size_t size);
/* Adds a symbol whose run-time value never exceeds factor times `bound`'s, nor `limit` (SIZE_MAX: none):
 * distinct slots, say, are at most the ids of the batch and the rows of the table. */
uint32_t ph__builder_symbol(
    struct ph_builder *builder, const char *name, uint32_t bound, size_t factor, size_t limit);
/* Returns the node that makes a value; NULL for inputs, parameters, states. Valid until a node is added. */
const struct ph__node *ph__builder_producer(const struct ph_builder *builder, ph_value value);
/* Adds a node to the current entry. attributes are copied. An input may be 0 (absent). The node is named
 * scope + op name + a number unless name is given. outputs are 0 when the builder has failed. */
void ph__emit(struct ph_builder *builder, const struct ph__op *op, const char *name, const void *attributes,
    size_t attributes_size, size_t num_inputs, const ph_value *inputs, size_t num_outputs, ph_value *outputs);
/* Does the same for one output. */
ph_value ph__emit1(struct ph_builder *builder, const struct ph__op *op, const char *name,
    const void *attributes, size_t attributes_size, size_t num_inputs, const ph_value *inputs);
/* Returns output `output` of an equal node (same op, inputs and attributes) already in the graph, 0 if none:
 * for packs and merges that several operators share. */
ph_value ph__builder_find(const struct ph_builder *builder, const struct ph__op *op, const void *attributes,
    size_t attributes_size, size_t num_inputs, const ph_value *inputs, size_t output);
/* Returns the declaration of a parameter or table value (its slices, too); NULL for other values. */
const struct ph__declaration *ph__builder_declaration(const struct ph_builder *builder, ph_value parameter);
/* Declare a parameter or table whose names and arrays are the program's already; undo a declaration that no
 * node reads any more. For passes. */
ph_value ph__builder_declare(struct ph_builder *builder, const struct ph__declaration *declaration);
void ph__builder_forget(struct ph_builder *builder, ph_value parameter);

struct ph_dim ph__dim(size_t extent);                     /* fixed */
struct ph_dim ph__dim_of(size_t extent, uint32_t symbol); /* extent * symbol */
/* Returns a dense ph_real type with these dimensions. */
struct ph_type ph__dense_type(uint32_t num_dims, const struct ph_dim *dims);
struct ph_type ph__scalar_type(void);
struct ph_type ph__token_type(void);
bool ph__dim_equal(struct ph_dim a, struct ph_dim b);
bool ph__type_equal(const struct ph_type *a, const struct ph_type *b);
/* Multiplies the dimensions from `first` on; all must be fixed. */
size_t ph__type_elements_from(const struct ph_type *type, uint32_t first);
/* Writes "(B,27,64)" into the caller's buffer, which it returns. */
const char *ph__type_text(const struct ph_type *type, char buffer[96]);

/* Runs task over [0, count) in blocks of `block` items: task(argument, first, last, worker). Blocks depend on
 * count and block alone. */
typedef void (*ph__range_task)(void *argument, size_t first, size_t last, size_t worker);
void ph__for_blocks(
    const struct ph_backend *backend, size_t count, size_t block, ph__range_task task, void *argument);

#endif
