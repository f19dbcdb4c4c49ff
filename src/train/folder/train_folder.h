/* The folder of a training: created for a new one, put back in order for a resumed one. */
#ifndef PH_TRAIN_TRAIN_FOLDER_H
#define PH_TRAIN_TRAIN_FOLDER_H

#include "train/trainer.h"

/* Begins in the folder, or resumes from it, as trainer->has_checkpoint says. Changes files only after all
 * checks of the job, and no file when nothing is left to do (trainer->summary.was_finished, and the other
 * values of summary.json). */
ph_status ph__trainer_open_folder(struct ph__trainer *trainer);

#endif
