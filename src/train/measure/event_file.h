/* TensorBoard event files: DIR/events.out.tfevents.*, one for each process that works on a training.
 *
 * A file is a run of TFRecords – length, its checksum, content, its checksum – whose contents are messages
 * "Event" of tensorflow/core/util/event.proto. Our events have one more field, which other readers skip: the
 * length of metrics.jsonl after the line that the event belongs to. By this field a resumed training finds
 * the events to keep, as it finds the lines. One thread at a time. */
#ifndef PH_TRAIN_EVENT_FILE_H
#define PH_TRAIN_EVENT_FILE_H

#include <stdio.h>

#include "base/format/protobuf.h"
#include "phloem/status.h"

struct ph__event_file { /* zero-initialised: no file; writing does nothing */
    FILE *file;
    char path[1152];
    struct ph__buffer event, summary, value; /* messages being written; empty between calls */
};

struct ph__scalar {
    const char *tag; /* "valid/auc" */
    double number;   /* left out where it is not finite */
};

/* The place of an event in the training. */
struct ph__event_place {
    uint64_t step;
    uint64_t metrics_bytes; /* length of metrics.jsonl with the event's line */
};

/* Creates a file for what follows `place`; unless that is the beginning, tells readers that a program started
 * there. PH_ERROR_DISK naming the path. */
ph_status ph__event_file_open(
    const char *folder, struct ph__event_place place, struct ph__event_file *file_out);
/* Writes one event, at the present time; nothing when no number is finite. PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__event_file_write(struct ph__event_file *file, struct ph__event_place place,
    const struct ph__scalar *scalars, size_t num_scalars);
void ph__event_file_close(struct ph__event_file *file);

/* Cuts off what is behind the first metrics_bytes of metrics.jsonl, and damaged records, in all event files
 * that this library has written into the folder. PH_ERROR_DISK. */
ph_status ph__event_files_cut(const char *folder, uint64_t metrics_bytes);

#endif
