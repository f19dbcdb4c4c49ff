#include "net/authenticate.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/sizes.h"
#include "base/sum/digest.h"
#include "net/wire.h"

/* ---- the secret ---- */

#define NOT_OWNER (S_IRWXG | S_IRWXO)
#define MAX_FILE_BYTES ((size_t)PH_SECRET_MAX_BYTES + 3) /* with a line end, and one byte too many */

/* Checks the type and mode of the open file, so that no other file can be put in its place meanwhile. */
static ph_status check_file(int descriptor, const char *path, size_t *size_out)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return ph_fail(PH_ERROR_CONFIG, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return ph_fail(PH_ERROR_CONFIG, "%s: not a file", path);
    if ((status.st_mode & NOT_OWNER) != 0)
        return ph_fail(PH_ERROR_CONFIG,
            "%s: the secret is open to users other than its owner (mode %03o): chmod 600 it", path,
            (unsigned)status.st_mode & 0777);
    *size_out = (size_t)status.st_size;
    return PH_OK;
}

static size_t without_line_end(const unsigned char *bytes, size_t size)
{
    if (size > 0 && bytes[size - 1] == '\n')
        size--;
    if (size > 0 && bytes[size - 1] == '\r')
        size--;
    return size;
}

static ph_status read_bytes(
    int descriptor, const char *path, unsigned char bytes[MAX_FILE_BYTES], size_t *size_out)
{
    size_t size;
    PH_TRY(check_file(descriptor, path, &size));
    size = ph__min(size, MAX_FILE_BYTES); /* enough of a longer one to see that it is longer */
    if (ph__file_read_at(descriptor, path, 0, bytes, size) != PH_OK)
        return ph_fail(PH_ERROR_CONFIG, "%s", ph_error_text());
    size = without_line_end(bytes, size);
    if (size > PH_SECRET_MAX_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "%s: the secret has more than %d bytes", path, PH_SECRET_MAX_BYTES);
    if (size < PH_SECRET_MIN_BYTES)
        return ph_fail(PH_ERROR_CONFIG, "%s: the secret has %zu bytes: it needs at least %d", path, size,
            PH_SECRET_MIN_BYTES);
    *size_out = size;
    return PH_OK;
}

static ph_status read_secret(int descriptor, const char *path, struct ph__secret *secret)
{
    unsigned char bytes[MAX_FILE_BYTES];
    const ph_status status = read_bytes(descriptor, path, bytes, &secret->size);
    if (status == PH_OK)
        memcpy(secret->bytes, bytes, secret->size);
    explicit_bzero(bytes, sizeof bytes);
    return status;
}

ph_status ph__secret_read(const char *path, struct ph__secret *secret_out)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait for a pipe */
    if (descriptor < 0)
        return ph_fail(PH_ERROR_CONFIG, "%s: cannot open: %s", path, strerror(errno));
    struct ph__secret secret = {0};
    const ph_status status = read_secret(descriptor, path, &secret);
    close(descriptor);
    if (status == PH_OK)
        *secret_out = secret;
    ph__secret_fini(&secret);
    return status;
}

void ph__secret_fini(struct ph__secret *secret)
{
    explicit_bzero(secret, sizeof *secret);
}

/* ---- the proofs ---- */

#define LABEL_BYTES 32
static_assert(PH_DIGEST_BYTES == PH_TRANSCRIPT_BYTES, "a transcript is a digest");
static_assert(PH_HMAC_BYTES == PH_PROOF_BYTES && PH_HMAC_BYTES == PH_CONNECTION_KEY_BYTES, "both are HMACs");

/* Versioned, so that no other protocol with the same secret yields the same sums. Indexed by the side that
 * sends. */
static const char proof_labels[2][LABEL_BYTES] = {"phloem 1 proof of client", "phloem 1 proof of server"};
static const char key_labels[2][LABEL_BYTES] = {"phloem 1 key of client", "phloem 1 key of server"};

static ph_status add_hello(struct ph__digest *digest, const void *hello, size_t size)
{
    unsigned char bytes[sizeof(uint64_t)];
    struct ph__wire_writer writer;
    ph__wire_writer_init(&writer, bytes, sizeof bytes);
    ph__wire_put_u64(&writer, size);
    PH_TRY(ph__digest_update(digest, bytes, sizeof bytes));
    return ph__digest_update(digest, hello, size);
}

/* Puts the sizes before the hellos: no byte can move from one hello to the other. */
ph_status ph__authenticate_transcript(const void *client_hello, size_t client_hello_size,
    const void *server_hello, size_t server_hello_size, unsigned char transcript_out[PH_TRANSCRIPT_BYTES])
{
    struct ph__digest *digest = NULL;
    PH_TRY(ph__digest_create(&digest));
    ph_status status = add_hello(digest, client_hello, client_hello_size);
    if (status == PH_OK)
        status = add_hello(digest, server_hello, server_hello_size);
    if (status == PH_OK)
        status = ph__digest_finish_bytes(digest, transcript_out);
    ph__digest_destroy(digest);
    return status;
}

/* Computes HMAC(secret, label | client's nonce | server's nonce | transcript); all parts have fixed sizes. */
static ph_status make_sum(const struct ph__secret *secret, const char label[LABEL_BYTES],
    const struct ph__challenge *challenge, unsigned char sum_out[PH_HMAC_BYTES])
{
    unsigned char message[LABEL_BYTES + 2 * PH_NONCE_BYTES + PH_TRANSCRIPT_BYTES], *at = message;
    memcpy(at, label, LABEL_BYTES);
    memcpy(at += LABEL_BYTES, challenge->client_nonce, PH_NONCE_BYTES);
    memcpy(at += PH_NONCE_BYTES, challenge->server_nonce, PH_NONCE_BYTES);
    memcpy(at + PH_NONCE_BYTES, challenge->transcript, PH_TRANSCRIPT_BYTES);
    return ph__hmac_sha256(secret->bytes, secret->size, message, sizeof message, sum_out);
}

ph_status ph__authenticate_prove(const struct ph__secret *secret, enum ph__side side,
    const struct ph__challenge *challenge, unsigned char proof_out[PH_PROOF_BYTES])
{
    return make_sum(secret, proof_labels[side], challenge, proof_out);
}

ph_status ph__authenticate_check(const struct ph__secret *secret, enum ph__side side,
    const struct ph__challenge *challenge, const unsigned char proof[PH_PROOF_BYTES], const char *peer)
{
    unsigned char wanted[PH_PROOF_BYTES];
    PH_TRY(ph__authenticate_prove(secret, side, challenge, wanted));
    const bool is_right = ph__secrets_are_equal(wanted, proof, sizeof wanted);
    explicit_bzero(wanted, sizeof wanted);
    return is_right ? PH_OK : ph_fail(PH_ERROR_PEER, "%s has another secret than the one given here", peer);
}

ph_status ph__authenticate_key(const struct ph__secret *secret, enum ph__side sender,
    const struct ph__challenge *challenge, unsigned char key_out[PH_CONNECTION_KEY_BYTES])
{
    return make_sum(secret, key_labels[sender], challenge, key_out);
}
