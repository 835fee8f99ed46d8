// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs while the compiler is built: writes the files of the library into a C file.
// Usage: embed OUT FILE.tir ...
#include <stdio.h>
#include <string.h>

static int embed(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    int c, column = 0;
    if (!in) {
        perror(path);
        return 1;
    }
    const char *slash = strrchr(path, '/');
    fprintf(out, "    {\"tir/%s\", (const char[]){", slash ? slash + 1 : path);
    while ((c = getc(in)) != EOF)
        fprintf(out, "%s%d,", column++ % 20 ? "" : "\n    ", c);
    fprintf(out, "\n    0}},\n");
    int failed = ferror(in);
    fclose(in);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = argc < 3;
    FILE *out = failed ? NULL : fopen(argv[1], "wb");
    if (!out)
        return 1;
    fprintf(out, "#include \"front/library.h\"\n\nconst struct library_file library_files[] = {\n");
    for (int i = 2; i < argc && !failed; i++)
        failed = embed(out, argv[i]);
    fprintf(out, "    {0, 0}};\n");
    return fclose(out) || failed;
}
