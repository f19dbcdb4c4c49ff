/* Shapes of known models. Sources: AlexNet as torchvision defines it (Krizhevsky, One weird trick for
 * parallelizing convolutional neural networks, 1404.5997); VGG-19 (Simonyan and Zisserman, 1409.1556,
 * configuration E); ResNet-50 (He et al., 1512.03385), with batch normalisation's scales and shifts; DLRM
 * (Naumov et al., 1906.00091): the dense part of MLPerf's training benchmark on Criteo's terabyte, whose 26
 * tables are sharded rather than pushed, and the whole model of its Criteo Kaggle script. */
#include "model_shapes.h"

#include <assert.h>
#include <stdbool.h>

static void add(struct model_shapes *shapes, size_t elements)
{
    assert(shapes->num_tensors < MODEL_MAX_TENSORS);
    shapes->elements[shapes->num_tensors++] = elements;
}

static void add_linear(struct model_shapes *shapes, size_t inputs, size_t outputs)
{
    add(shapes, inputs * outputs);
    add(shapes, outputs); /* bias */
}

/* widths: the input's, then each layer's, ended by 0. */
static void add_mlp(struct model_shapes *shapes, const size_t *widths)
{
    for (; widths[1] != 0; widths++)
        add_linear(shapes, widths[0], widths[1]);
}

static void add_convolution(struct model_shapes *shapes, size_t inputs, size_t outputs, size_t width)
{
    add_linear(shapes, inputs * width * width, outputs);
}

static void add_normalised_convolution(
    struct model_shapes *shapes, size_t inputs, size_t outputs, size_t width)
{
    add(shapes, inputs * width * width * outputs);
    add(shapes, outputs); /* scale */
    add(shapes, outputs); /* shift */
}

static void add_alexnet(struct model_shapes *shapes)
{
    add_convolution(shapes, 3, 64, 11);
    add_convolution(shapes, 64, 192, 5);
    add_convolution(shapes, 192, 384, 3);
    add_convolution(shapes, 384, 256, 3);
    add_convolution(shapes, 256, 256, 3);
    add_mlp(shapes, (size_t[]){256 * 6 * 6, 4096, 4096, 1000, 0});
}

static void add_vgg19(struct model_shapes *shapes)
{
    static const struct {
        size_t channels, layers;
    } stages[] = {{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}};
    size_t inputs = 3;
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
        for (size_t layer = 0; layer < stages[s].layers; layer++) {
            add_convolution(shapes, inputs, stages[s].channels, 3);
            inputs = stages[s].channels;
        }
    add_mlp(shapes, (size_t[]){512 * 7 * 7, 4096, 4096, 1000, 0});
}

/* Adds a block that narrows to `width` channels and widens to four times as many; the first block of a stage
 * projects its input. */
static void add_bottleneck(struct model_shapes *shapes, size_t inputs, size_t width, bool is_first)
{
    add_normalised_convolution(shapes, inputs, width, 1);
    add_normalised_convolution(shapes, width, width, 3);
    add_normalised_convolution(shapes, width, 4 * width, 1);
    if (is_first)
        add_normalised_convolution(shapes, inputs, 4 * width, 1);
}

static void add_resnet50(struct model_shapes *shapes)
{
    static const size_t blocks[] = {3, 4, 6, 3}; /* of each stage; from 64 channels, doubled by each stage */
    size_t inputs = 64;
    add_normalised_convolution(shapes, 3, inputs, 7);
    for (size_t stage = 0; stage < sizeof blocks / sizeof *blocks; stage++)
        for (size_t block = 0; block < blocks[stage]; block++) {
            add_bottleneck(shapes, inputs, (size_t)64 << stage, block == 0);
            inputs = (size_t)256 << stage;
        }
    add_linear(shapes, inputs, 1000);
}

enum { CRITEO_TABLES = 26 };

/* Counts the inputs of the over arch: the dense arch's output, and the dot products of all pairs of that
 * output and the tables' bags. */
static size_t interactions(size_t dim)
{
    return dim + (CRITEO_TABLES + 1) * CRITEO_TABLES / 2;
}

static void add_dlrm_mlperf(struct model_shapes *shapes)
{
    add_mlp(shapes, (size_t[]){13, 512, 256, 128, 0});
    add_mlp(shapes, (size_t[]){interactions(128), 1024, 1024, 512, 256, 1, 0});
}

static void add_dlrm_kaggle(struct model_shapes *shapes)
{
    static const size_t rows[CRITEO_TABLES] = {1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145,
        5683, 8351593, 3194, 27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572};
    enum { DIM = 16 };
    for (size_t table = 0; table < CRITEO_TABLES; table++)
        add(shapes, rows[table] * DIM);
    add_mlp(shapes, (size_t[]){13, 512, 256, 64, DIM, 0});
    add_mlp(shapes, (size_t[]){interactions(DIM), 512, 256, 1, 0});
}

void model_shapes_init(struct model_shapes *shapes, enum model model)
{
#define MODEL_ENTRY(model, model_name, model_figure) {model_name, #model_figure, add_##model_figure},
    static const struct {
        const char *name, *figure;
        void (*add_tensors)(struct model_shapes *shapes);
    } models[NUM_MODELS] = {MODEL_LIST(MODEL_ENTRY)};
#undef MODEL_ENTRY
    *shapes = (struct model_shapes){.name = models[model].name, .figure = models[model].figure};
    models[model].add_tensors(shapes);
}

size_t model_shapes_total(const struct model_shapes *shapes)
{
    size_t total = 0;
    for (size_t i = 0; i < shapes->num_tensors; i++)
        total += shapes->elements[i];
    return total;
}
