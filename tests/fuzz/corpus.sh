#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The seeds of fuzz targets. Those that somebody named are files in corpus/SEEDS; those that a fuzzer found,
# which have hashes for names, are in the archive corpus/SEEDS.tar.gz.
#
#   corpus.sh unpack SEEDS FOLDER                 puts all of them into FOLDER
#   corpus.sh pack SEEDS FOLDER                   makes the archive of those files of FOLDER named by hashes
#   corpus.sh replay SEEDS PROGRAM [FOLDER...]    runs PROGRAM on all of them, and on more folders
set -eu
corpus=$(dirname "$0")/corpus

unpack() {
    mkdir -p "$2"
    [ ! -d "$corpus/$1" ] || cp "$corpus/$1"/* "$2"
    [ ! -f "$corpus/$1.tar.gz" ] || tar -xzf "$corpus/$1.tar.gz" -C "$2"
}

# The same files give the same bytes.
pack() {
    found=$(cd "$2" && ls | grep -xE '[0-9a-f]{40}') || return 0
    echo "$found" |
        tar -c --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 \
            -C "$2" -T - | gzip -9n >"$corpus/$1.tar.gz"
}

replay() {
    seeds=$1
    program=$2
    shift 2
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    unpack "$seeds" "$folder"
    "$program" "$folder" "$@"
}

case ${1-} in
unpack | pack | replay) "$@" ;;
*)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac
