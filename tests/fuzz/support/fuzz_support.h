/* What every fuzz target shares. A target is one file, tests/fuzz/fuzz_<name>.c, with one function that takes
 * any bytes: libFuzzer calls it in the `fuzz` preset (./run fuzz), support/replay.c in the sanitizers' test
 * runs. It must neither crash nor leak whatever the bytes are, and what it accepts must hold together: a
 * broken promise ends the process by fuzz_require. One thread. */
#ifndef PH_FUZZ_SUPPORT_H
#define PH_FUZZ_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process when the condition does not hold, saying which and where. */
#define fuzz_require(condition) ((condition) ? (void)0 : fuzz__broken(#condition, __FILE__, __LINE__))
_Noreturn void fuzz__broken(const char *condition, const char *file, int line);

/* The path of a file in memory that holds these bytes until the next call for the same slot. Static storage.
 */
#define FUZZ_NUM_SLOTS 4
const char *fuzz_file(size_t slot, const void *bytes, size_t size);

/* The path of `name` (up to 32 bytes) in a folder in memory that is this process's alone and removed at its
 * end. */
void fuzz_folder_path(const char *name, char path_out[64]);

/* Writes these bytes to such a file. */
void fuzz_put(const char *path, const void *bytes, size_t size);

/* The bytes of a file, malloc'ed, with a NUL behind them. */
char *fuzz_read(const char *path, size_t *size_out);

/* Applies an input to a valid file, where bytes of its own could not follow a format that is still growing: a
 * list of edits, each of where (2 bytes), how many bytes go, how many come, and these. The result is
 * malloc'ed; what lay at `mark` of the file lies at *mark_out. */
uint8_t *fuzz_edit(const char *file, size_t file_size, const uint8_t *data, size_t size, size_t mark,
    size_t *mark_out, size_t *size_out);

/* Makes the seal of the bytes fit, so that a target gets past it: if there is room for one at `offset`, its
 * 64 digits are replaced by the sum of the bytes with zeros in their place. */
void fuzz_reseal(uint8_t *bytes, size_t size, size_t offset);
void fuzz_reseal_json(uint8_t *bytes, size_t size); /* where they begin as a sealed JSON document does */

/* fuzz_file of the bytes, with a fitting seal where they begin as a sealed JSON document or a sealed
 * safetensors file does. */
const char *fuzz_sealed_json(size_t slot, const void *bytes, size_t size);
const char *fuzz_sealed_tensors(size_t slot, const void *bytes, size_t size);

#endif
