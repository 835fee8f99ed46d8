#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The style rules a machine can check; docs/style.md says why. Prints every violation.
# A tool that is not installed is skipped with a line that says so.
#
#   tools/check.sh               everything but clang-tidy
#   tools/check.sh --tidy DIR    clang-tidy alone, over the sources that were built in DIR with
#                                CC=clang (it takes minutes)
set -u
cd "$(dirname "$0")/.." || exit 1

# The files of the project whose path matches an extended regular expression: those that git tracks.
files() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files
    else
        find . -type f -not -path './build*' -not -path './.*/*' | sed 's|^\./||'
    fi | grep -E "$1" | while read -r file; do [ -f "$file" ] && echo "$file"; done
}

# report MESSAGE < LINES: each line is a violation
report() {
    sed "s|^|$1: |"
}

# search PATTERN FILES_PATTERN: file:line:text of every match
search() {
    files "$2" | xargs -r grep -nE "$1" /dev/null
}

# Includes, as search prints them, that tools/layers.txt does not allow.
layers() {
    files '^(compiler|runtime)/.*\.(c|h|re|def)$' | awk '
        function row(path) { # the row of the longest path
            while (!(path in rows) && sub("/?[^/]*$", "", path))
                ;
            return path
        }
        function within(path, folder) { return path == folder || index(path, folder "/") == 1 }
        function folder(path) { sub("/[^/]*$", "", path); return path }
        function find(name, from,    i) { # the file that an include names
            for (i = 1; i <= count; i++)
                if (roots[i] name in known)
                    return roots[i] name
            return folder(from) "/" name
        }
        function is_allowed(from, to,    i, n, parts) {
            n = split(rows[row(from)], parts, " ")
            for (i = 1; i <= n; i++)
                if (within(to, parts[i]))
                    return 1
            return row(from) == row(to) || folder(from) == folder(to)
        }
        BEGIN { count = split("compiler/ compiler/include/ runtime/include/ runtime/ runtime/emu/", roots, " ") }
        FILENAME == "tools/layers.txt" {
            if ($0 ~ /^[^#]*:/) { at = index($0, ":"); rows[substr($0, 1, at - 1)] = substr($0, at + 1) }
            next
        }
        FILENAME == "-" { known[$0]; next }
        {
            split($0, part, "\"")
            from = $0
            sub(":.*", "", from)
            to = find(part[2], from)
            if (!is_allowed(from, to))
                print from " includes " to
        }' tools/layers.txt - "$1"
}

violations() {
    files '\.(c|h|re|def|py|sh)$|meson|^tools/[a-z]+$' |
        xargs -r grep -L 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception' |
        report 'no SPDX line'

    # The page of artifacts names the version of the header.
    files '^runtime/include/tir/artifact\.h$' | while read -r header; do
        version=$(sed -n 's/^#define TIR_ARTIFACT_VERSION \([0-9]*\)u$/\1/p' "$header")
        grep -qs "u32   version, $version\$" docs/artifact.md || echo docs/artifact.md
    done | report 'another version of artifacts'

    # A file that begins as a program is run by its name.
    files '(\.(py|sh)|^tools/[a-z-]+)$' | while read -r file; do
        [ -x "$file" ] || ! head -n 1 "$file" | grep -q '^#!' || echo "$file"
    done | report 'a program that is not executable'

    search '\b(sprintf|strcpy|strcat|strtok|gets|atoi|alloca|setlocale|system)\(' '\.(c|h|re)$' |
        report 'banned function'

    # Below the API edge memory comes from an arena or the caller's allocator.
    search '\b(malloc|calloc|realloc|free)\(' '^compiler/.*\.(c|h|re)$' |
        grep -vE '^compiler/(compile/compile\.c:|driver/|base/arena\.c:)' |
        report 'not the arena'

    # Who may include whom, and LLVM in the target alone.
    includes=$(mktemp)
    search '^#include "' '^(compiler|runtime)/.*\.(c|h|re|def)$' >"$includes"
    layers "$includes" | report 'layers'
    rm -f "$includes"
    search '#include [<"]llvm-c/' '\.(c|h|re)$' | grep -v '^compiler/target/nvptx/' |
        report 'LLVM outside of the target'

    # The compiler warns of a constant that a switch over an enum does not have; a cast hides it.
    search 'switch \(\(int\)' '\.(c|h|re)$' | report 'switch over a cast'

    # tests/meson.build runs lit in three folders.
    search '// RUN:' '^tests/.*\.(tir|test)$' | grep -vE '^tests/(cli|device|pass)/' |
        report 'a test that lit does not run'

    search '\b(TODO|FIXME|XXX)\b' '\.(c|h|re|def|py|sh|tir)$' | grep -v '^tools/check\.sh:' |
        report 'unfinished'
    search "(^|[^A-Za-z0-9_.])/(home|root|work)/" '.' | grep -v '^tools/check\.sh:' |
        report 'a path of one machine'
    search '[[:space:]]+$' '\.(c|h|re|def|py|sh|md|tir)$|meson' | report 'trailing space'

    # A table undefines its macros, so that every use of it starts clean.
    for table in $(files '\.def$'); do
        for macro in $(sed -nE 's/^([A-Z_]+)\(.*/\1/p' "$table" | sort -u); do
            grep -q "^#undef $macro\$" "$table" || echo "$table: #undef $macro"
        done
    done | report 'table'

    # clang-format leaves comments as they are, so that drawings stay whole.
    search '.{101,}' '\.[ch]$' | grep -E '^[^:]+:[0-9]+: *//' | report 'comment beyond 100 columns'

    if command -v clang-format >/dev/null && clang-format --version | grep -q 'version 14\.'; then
        files '\.[ch]$' | xargs -r clang-format --dry-run --Werror 2>&1 |
            sed -n 's/:.*error:.*//p' | uniq | report 'clang-format -i'
    else
        echo 'clang-format 14 is not installed: formatting was not checked' >&2
    fi

    if command -v codespell >/dev/null; then
        files '\.(c|h|re|def|md|py|tir|1)$' | xargs -r codespell --ignore-words tools/words.txt 2>/dev/null |
            report 'spelling'
    else
        echo 'codespell is not installed: spelling was not checked' >&2
    fi
}

tidy() {
    if ! command -v clang-tidy >/dev/null || [ ! -f "$1/compile_commands.json" ]; then
        echo 'clang-tidy needs to be installed, and a directory that meson has set up' >&2
        return 2
    fi
    wrong=0
    for file in $(files '^(compiler|runtime|tests|tools)/.*\.c$'); do
        grep -q "\"file\": \".*$file\"" "$1/compile_commands.json" || continue
        clang-tidy -p "$1" --quiet "$file" 2>/dev/null || wrong=1
    done
    return $wrong
}

if [ "${1-}" = --tidy ]; then
    tidy "${2:-build}"
    exit
fi

found=$(violations)
[ -z "$found" ] && exit
printf '%s\n' "$found"
exit 1
