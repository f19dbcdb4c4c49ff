/* Targets that speak as one side of a hub's control connection: an input is a list of records, a byte of the
 * target's own, the size of a body in two bytes, the body; and what they say may have wrong tags and
 * descriptors. */
#ifndef PH_FUZZ_FRAMES_H
#define PH_FUZZ_FRAMES_H

#include <stdbool.h>

#include "net/frame_key.h"
#include "support/fuzz_support.h"

struct fuzz_record {
    uint8_t head;
    const uint8_t *body; /* borrowed from the input */
    size_t size;
};

/* Takes the next record off the input; the last may be cut. false: none is left. */
bool fuzz_next_record(const uint8_t **data, size_t *size, struct fuzz_record *record_out);

enum { FUZZ_MAX_BODY = 1000, FUZZ_CONTROL_HEAD_BYTES = 8 };

struct fuzz_frame {
    const void *head, *body;
    size_t head_bytes, size; /* of head and body; the body's up to FUZZ_MAX_BODY */
    bool has_wrong_tag;      /* where it has any */
    const int *descriptors;  /* borrowed */
    size_t num_descriptors;
};

/* Says a frame, with a tag where there is a key, as far as the other side still takes it. */
void fuzz_send_frame(int socket, struct ph__frame_key *key, const struct fuzz_frame *frame);

/* The head of a control frame (net/control_stream.h). */
void fuzz_control_head(
    uint16_t type, size_t size, size_t num_descriptors, unsigned char head_out[FUZZ_CONTROL_HEAD_BYTES]);

/* Descriptors that are open in this process: more after an input than before it were left open. */
size_t fuzz_count_descriptors(void);

#endif
