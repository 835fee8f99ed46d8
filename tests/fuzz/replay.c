// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a fuzz target over files, without a fuzzer. Usage: replay FILE_OR_FOLDER...
// Each file is copied to a block of exactly its size, so that AddressSanitizer sees reads past it.

#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    int result = LLVMFuzzerTestOneInput(data, size);
    if (result)
        fprintf(stderr, "%s: the target returned %d\n", path, result);
    free(data);
    return result ? -1 : 1;
}

// The number of files replayed; exits on a failure.
static int replay(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    if (!S_ISDIR(info.st_mode)) {
        if (replay_file(path) < 0)
            exit(1);
        return 1;
    }
    int count = 0;
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        if (entries[i]->d_name[0] != '.' &&
            snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name) < (int)sizeof inner)
            count += replay(inner);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += replay(argv[i]);
    printf("%d files replayed\n", count);
    return count ? 0 : 1; // an empty corpus tests nothing
}
