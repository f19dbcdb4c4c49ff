/* A checkpoint to resume from: one safetensors file with everything that a training carries from step to
 * step.
 *
 * Tensors: parameters and state by name, as in model.safetensors; optimizer slots, "slot.m:embedding.user";
 * the latest samples' scores and labels, "recent:scores" and "recent:labels"; those of the window of
 * progressive validation, "stream:scores" and "stream:labels".
 *
 * Metadata: "format", "version", "values" (lines "train.batch_size=64" of the settings that a resumed
 * training keeps), and JSON objects: "job" (what the checkpoint belongs to), "carried" (the numbers, each
 * exact) and "data" (data_fingerprint.h; older files lack it). To carry more, add a line to the table of
 * resume_file.c, or a tensor to its list. */
#ifndef PH_TRAIN_RESUME_FILE_H
#define PH_TRAIN_RESUME_FILE_H

#include "train/trainer.h"

/* Writes the file atomically and durably. */
ph_status ph__resume_file_write(const char *path, struct ph__trainer *trainer);

/* Fills the trainer from a file of the same job. PH_ERROR_CHECKPOINT, and an unchanged trainer, when the file
 * is damaged, incomplete or of another job: another model, encoder or setting that may not change. */
ph_status ph__resume_file_read(const char *path, struct ph__trainer *trainer);

/* Gives the step of the best model that belongs to the file; 0: none. Trusts the header. */
ph_status ph__resume_file_best_step(const char *path, uint64_t *step_out);

/* Gives the file's record of the training's data, in the arena; NULL: it has none. Trusts the header. */
ph_status ph__resume_file_data(const char *path, struct ph__arena *arena, const char **text_out);

#endif
