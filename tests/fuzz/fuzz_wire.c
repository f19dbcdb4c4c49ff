/* Control messages: an input says what is read and then is the message. What is read without a fault gives
 * the same bytes when it is written; after a fault there are only zeros and empty texts. */
#include <stdbool.h>
#include <string.h>

#include "base/text/utf8.h"
#include "net/wire.h"
#include "support/fuzz_support.h"

enum { NUM_KINDS = 7, MAX_TEXT = 20, MAX_BYTES = 7, MAX_MESSAGE = 4096 };

struct exchange {
    struct ph__wire_reader reader;
    struct ph__wire_writer writer;
};

static void pass_text(struct exchange *exchange)
{
    char text[MAX_TEXT + 1];
    ph__wire_get_text(&exchange->reader, MAX_TEXT, text);
    fuzz_require(strlen(text) <= MAX_TEXT && ph__utf8_is_plain(text, strlen(text)));
    fuzz_require(exchange->reader.fault == NULL || text[0] == '\0');
    ph__wire_put_text(&exchange->writer, text, MAX_TEXT);
}

static void pass_bytes(struct exchange *exchange, size_t size)
{
    static const unsigned char zeros[MAX_BYTES];
    unsigned char bytes[MAX_BYTES];
    ph__wire_get_bytes(&exchange->reader, size, bytes);
    fuzz_require(exchange->reader.fault == NULL || memcmp(bytes, zeros, size) == 0);
    ph__wire_put_bytes(&exchange->writer, bytes, size);
}

/* Numbers are held as what they are, so that a wrong width would be seen. */
static void pass(struct exchange *exchange, unsigned kind)
{
    switch (kind % NUM_KINDS) {
    case 0:
        ph__wire_put_u8(&exchange->writer, ph__wire_get_u8(&exchange->reader));
        break;
    case 1:
        ph__wire_put_u16(&exchange->writer, ph__wire_get_u16(&exchange->reader));
        break;
    case 2:
        ph__wire_put_u32(&exchange->writer, ph__wire_get_u32(&exchange->reader));
        break;
    case 3:
        ph__wire_put_u64(&exchange->writer, ph__wire_get_u64(&exchange->reader));
        break;
    case 4:
        ph__wire_put_f32(&exchange->writer, ph__wire_get_f32(&exchange->reader));
        break;
    case 5:
        pass_bytes(exchange, kind / NUM_KINDS % (MAX_BYTES + 1));
        break;
    default:
        pass_text(exchange);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char buffer[MAX_MESSAGE];
    if (size == 0 || data[0] >= size || size > MAX_MESSAGE)
        return 0;
    const size_t num_fields = data[0], message_size = size - 1 - num_fields;
    const uint8_t *message = data + 1 + num_fields;
    struct exchange exchange;
    ph__wire_reader_init(&exchange.reader, message, message_size);
    ph__wire_writer_init(&exchange.writer, buffer, sizeof buffer);
    for (size_t i = 0; i < num_fields; i++)
        pass(&exchange, data[1 + i]);
    const bool has_rest = exchange.reader.at < message_size;
    if (ph__wire_reader_finish(&exchange.reader, "input") != PH_OK) {
        fuzz_require(exchange.reader.fault != NULL || has_rest);
        return 0;
    }
    size_t written = 0;
    fuzz_require(!has_rest);
    fuzz_require(ph__wire_writer_finish(&exchange.writer, "input", &written) == PH_OK);
    fuzz_require(written == message_size && memcmp(buffer, message, written) == 0);
    return 0;
}
