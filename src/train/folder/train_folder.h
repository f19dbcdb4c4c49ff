/* The folder of a training: made for one that begins, put back in order for one that resumes. */
#ifndef PH_TRAIN_TRAIN_FOLDER_H
#define PH_TRAIN_TRAIN_FOLDER_H

#include "train/trainer.h"

/* Begins in the folder, or resumes from it, as trainer->has_checkpoint says. Files are touched once all that
 * could be wrong with the job has been looked at; not at all when nothing is left to do
 * (trainer->summary.was_finished, and what summary.json said). */
ph_status ph__trainer_open_folder(struct ph__trainer *trainer);

#endif
