// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes the sample as a file, for programs that load one. Usage: write_sample OUT

#include <stdio.h>

#include "sample.h"

int main(int argc, char **argv)
{
    uint8_t *bytes;
    size_t size;
    FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (!file || tir_artifact_encode(&sample, NULL, &bytes, &size, NULL))
        return 1;
    size_t written = fwrite(bytes, 1, size, file);
    tir_artifact_bytes_free(bytes, size, NULL);
    return fclose(file) || written != size;
}
