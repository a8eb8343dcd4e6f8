#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the runtime's users get: installs it into an empty folder, compiles the C example against the installed files, runs it on a
# model, and checks that the library stays small and needs nothing but the C++ standard library.
#   install_test.sh CMAKE BUILD SOURCE MODEL
set -eu
cmake=$1 build=$2 source=$3 model=$4
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
"$cmake" --install "$build" --component runtime --prefix "$prefix" >/dev/null
lib=$(dirname "$(find "$prefix" -name libtreadle_runtime.so | head -n 1)")
test -f "$lib/libtreadle_runtime.a"
test -f "$lib/cmake/treadle/treadle-config.cmake"
test -f "$lib/pkgconfig/treadle-runtime.pc"

${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$prefix/include" "$source/examples/c/classify.c" -L"$lib" -ltreadle_runtime -o "$prefix/classify"
LD_LIBRARY_PATH=$lib "$prefix/classify" "$model" | tee "$prefix/answer"
grep -q '^class 0  10$' "$prefix/answer"
if LD_LIBRARY_PATH=$lib "$prefix/classify" "$prefix/classify" 2>"$prefix/error"; then exit 1; fi
grep -q 'TRD-ART-001' "$prefix/error"

strip -o "$prefix/stripped" "$lib/libtreadle_runtime.so"
size=$(stat -c %s "$prefix/stripped")
echo "libtreadle_runtime.so: $size bytes stripped"
test "$size" -lt 1048576
readelf -d "$lib/libtreadle_runtime.so" | grep NEEDED | grep -vE 'lib(stdc\+\+|m|gcc_s|c|dl|pthread)\.so|ld-linux' && exit 1
exit 0
