/* TensorBoard event files: DIR/events.out.tfevents.*, one for each process that works on a training.
 *
 * A file is a run of TFRecords – length, its checksum, content, its checksum – whose contents are messages
 * "Event" of tensorflow/core/util/event.proto. Beside what TensorBoard reads, each of ours carries how long
 * metrics.jsonl was behind the line that it goes with, in a field that other readers pass over: so a training
 * that resumes knows which events belong to what it goes on from, as it knows it of the lines. One thread at
 * a time. */
#ifndef PH_TRAIN_EVENT_FILE_H
#define PH_TRAIN_EVENT_FILE_H

#include <stdio.h>

#include "base/format/protobuf.h"
#include "phloem/status.h"

struct ph__event_file { /* zero-initialised is none: writing does nothing */
    FILE *file;
    char path[1152];
    struct ph__protobuf event, summary, value; /* messages being written: empty between calls */
};

struct ph__scalar {
    const char *tag; /* "valid/auc" */
    double number;   /* left out where it is not finite */
};

/* Where an event belongs. */
struct ph__event_place {
    uint64_t step;
    uint64_t metrics_bytes; /* of metrics.jsonl, its line included */
};

/* Makes a file for what follows `place`; where that is not the beginning, readers are told that a program
 * started there. PH_ERROR_DISK naming the path. */
ph_status ph__event_file_open(
    const char *folder, struct ph__event_place place, struct ph__event_file *file_out);
/* One event now, by the clock. Nothing is written where no number is finite. PH_ERROR_DISK, PH_ERROR_MEMORY.
 */
ph_status ph__event_file_write(struct ph__event_file *file, struct ph__event_place place,
    const struct ph__scalar *scalars, size_t num_scalars);
void ph__event_file_close(struct ph__event_file *file);

/* Cuts what is behind the first metrics_bytes of metrics.jsonl, and what is damaged, from all files of this
 * kind that this library has written into the folder. PH_ERROR_DISK. */
ph_status ph__event_files_cut(const char *folder, uint64_t metrics_bytes);

#endif
