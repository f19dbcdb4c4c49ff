/* Parameters of models that papers on parameter servers measure with: the number of elements of each tensor,
 * in the order of the model's definition. */
#ifndef PH_BENCH_MODEL_SHAPES_H
#define PH_BENCH_MODEL_SHAPES_H

#include <stddef.h>

/* X(enum, name, name in figures) */
#define MODEL_LIST(X)                                         \
    X(MODEL_ALEXNET, "AlexNet", alexnet)                      \
    X(MODEL_VGG19, "VGG-19", vgg19)                           \
    X(MODEL_RESNET50, "ResNet-50", resnet50)                  \
    X(MODEL_DLRM_MLPERF, "DLRM (MLPerf), dense", dlrm_mlperf) \
    X(MODEL_DLRM_KAGGLE, "DLRM (Criteo Kaggle)", dlrm_kaggle)

#define MODEL_ENUM(model, name, figure) model,
enum model { MODEL_LIST(MODEL_ENUM) NUM_MODELS };
#undef MODEL_ENUM

enum { MODEL_MAX_TENSORS = 256 };

struct model_shapes {
    const char *name, *figure; /* static */
    size_t num_tensors;
    size_t elements[MODEL_MAX_TENSORS];
};

void model_shapes_init(struct model_shapes *shapes, enum model model);
size_t model_shapes_total(const struct model_shapes *shapes); /* elements of all tensors */

#endif
