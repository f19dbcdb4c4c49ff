/* Exports a trained model as an ONNX file, for programs that score by other means (docs/ONNX.md). */
#ifndef PH_SERVE_ONNX_EXPORT_H
#define PH_SERVE_ONNX_EXPORT_H

#include "serve/model_folder.h"

/* Writes the program of an open model folder, with its weights and the shift of its logits, to the file,
 * atomically. `kind` is the model's name in errors and in the graph ("dlrm"). Inputs and outputs are those of
 * docs/ONNX.md. PH_ERROR_USAGE for an operator without an ONNX form and for a model above 2 GiB,
 * PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__onnx_export(const struct ph__model_folder *model, const char *kind, const char *path);

#endif
