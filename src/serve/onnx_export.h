/* A trained model as an ONNX file, for programs that score by other means (docs/ONNX.md). */
#ifndef PH_SERVE_ONNX_EXPORT_H
#define PH_SERVE_ONNX_EXPORT_H

#include "serve/model_folder.h"

struct ph__onnx_export_options {
    const char *kind;   /* what errors and the graph call the model: "dlrm" */
    double logit_shift; /* added to the logit of task 0, as in ph_scorer_options */
};

/* Writes the program of an open model folder, with its weights, to the file, atomically. Inputs and outputs are those of
 * docs/ONNX.md. PH_ERROR_USAGE for an operator that ONNX is not taught and for a model above 2 GiB, PH_ERROR_DISK,
 * PH_ERROR_MEMORY. */
ph_status ph__onnx_export(
    const struct ph__model_folder *model, const struct ph__onnx_export_options *options, const char *path);

#endif
