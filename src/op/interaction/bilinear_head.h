/* What the operators of FinalMLP's head share (op_bilinear_head.c): H heads of T tasks. */
#ifndef PH_OP_BILINEAR_HEAD_H
#define PH_OP_BILINEAR_HEAD_H

#include "op/operator.h"

/* Samples multiplied together: whole blocks of the product's rows, and the products stay in the second cache. */
enum { PH_BILINEAR_BLOCK_SAMPLES = 24 };

struct ph__bilinear_head {
    const struct ph_kernels *kernels;
    size_t num_tasks, num_heads, x_dim, y_dim; /* T, H, k, m */
    const ph_real *x, *y, *weight, *dz;
    ph_real *z, *dx, *dy;
    ph_real *turned;  /* (T,H,m,k) */
    ph_real *workers; /* (workers, worker_reals): products or scaled vectors of a block */
    size_t worker_reals;
};

static inline size_t ph__bilinear_x_reals(const struct ph__bilinear_head *head) /* K */
{
    return head->num_heads * head->x_dim;
}

static inline size_t ph__bilinear_y_reals(const struct ph__bilinear_head *head) /* M */
{
    return head->num_heads * head->y_dim;
}

static inline size_t ph__bilinear_task_reals(const struct ph__bilinear_head *head) /* of a task's weight */
{
    return head->num_heads * head->x_dim * head->y_dim;
}

/* x (B,K), y (B,M), weight (T,H,K/H,M/H) fit each other. */
bool ph__are_bilinear_types(const struct ph_type *x, const struct ph_type *y, const struct ph_type *weight);
struct ph__bilinear_head ph__describe_bilinear(const struct ph_call *call, const struct ph_operand *x,
    const struct ph_operand *y, const struct ph_operand *weight);
/* Of the workers' parts of the scratch, which come first. */
size_t ph__bilinear_workers_bytes(const struct ph_call *call, const struct ph__bilinear_head *head);
/* `products` multiplications and additions for each number of the weight and each sample */
void ph__bilinear_cost(
    const struct ph_call *call, const struct ph_operand *weight, double products, struct ph_cost *cost_out);

/* Inputs of both backward operators: dz (B,T), x, y, weight. */
enum { PH_BILINEAR_GRADIENT_DZ, PH_BILINEAR_GRADIENT_X, PH_BILINEAR_GRADIENT_Y, PH_BILINEAR_GRADIENT_WEIGHT };
ph_status ph__check_bilinear_gradient(const struct ph_infer *infer);
struct ph__bilinear_head ph__describe_bilinear_gradient(const struct ph_call *call);

#endif
