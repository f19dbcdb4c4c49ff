/* Control messages as bytes: numbers little-endian, one after another without padding, texts with their
 * length before them. The reader must know what was written: the bytes do not describe themselves.
 *
 * Neither side needs checks on the way. A writer without room writes nothing more; a reader gives zeros and
 * empty texts after a fault; finish reports both. Values that were read count only after
 * ph__wire_reader_finish has returned PH_OK. Nothing is allocated. One thread at a time for each writer or
 * reader. */
#ifndef PH_NET_WIRE_H
#define PH_NET_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

/* ---- writing ---- */

struct ph__wire_writer {
    unsigned char *bytes; /* borrowed until finish */
    size_t capacity, used;
    const char *fault; /* static; NULL: none */
};

void ph__wire_writer_init(struct ph__wire_writer *writer, void *buffer, size_t capacity);

/* Writes the bytes as they are, without their size. */
void ph__wire_put_bytes(struct ph__wire_writer *writer, const void *bytes, size_t size);
void ph__wire_put_u8(struct ph__wire_writer *writer, uint8_t number);
void ph__wire_put_u16(struct ph__wire_writer *writer, uint16_t number);
void ph__wire_put_u32(struct ph__wire_writer *writer, uint32_t number);
void ph__wire_put_u64(struct ph__wire_writer *writer, uint64_t number);
void ph__wire_put_f32(struct ph__wire_writer *writer, float number); /* its bits, whatever they mean */
/* Writes UTF-8 without control characters, at most max_bytes (below 64 Ki); any other text is a fault, since
 * the other side would reject it. */
void ph__wire_put_text(struct ph__wire_writer *writer, const char *text, size_t max_bytes);

/* Gives the size of the message. PH_ERROR_USAGE after a fault; `what` names the message. */
ph_status ph__wire_writer_finish(const struct ph__wire_writer *writer, const char *what, size_t *size_out);

/* ---- reading ---- */

struct ph__wire_reader {
    const unsigned char *bytes; /* borrowed until finish */
    size_t size, at;
    const char *fault; /* static; NULL: none */
};

void ph__wire_reader_init(struct ph__wire_reader *reader, const void *bytes, size_t size);

uint8_t ph__wire_get_u8(struct ph__wire_reader *reader);
uint16_t ph__wire_get_u16(struct ph__wire_reader *reader);
uint32_t ph__wire_get_u32(struct ph__wire_reader *reader);
uint64_t ph__wire_get_u64(struct ph__wire_reader *reader);
float ph__wire_get_f32(struct ph__wire_reader *reader);
/* Reads bytes; zeros after a fault. */
void ph__wire_get_bytes(struct ph__wire_reader *reader, size_t size, void *bytes_out);
/* Reads a NUL-terminated text: text_out has max_bytes + 1 bytes. A longer text, or one that is not UTF-8 or
 * has control characters, is a fault. */
void ph__wire_get_text(struct ph__wire_reader *reader, size_t max_bytes, char *text_out);

/* Fails with PH_ERROR_DATA when anything was missing, invalid or left over; `what` names the message and its
 * sender. */
ph_status ph__wire_reader_finish(const struct ph__wire_reader *reader, const char *what);

#endif
