#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime can be built alone: configures the project without the compiler in an empty folder, builds and installs it, and checks that
# LLVM and protobuf were not looked for and that the library does not load them.
#   alone_test.sh CMAKE BUILD SOURCE C_COMPILER CXX_COMPILER
set -eu
cmake=$1 build=$2 source=$3
folder=$(mktemp -d "$(dirname "$build")/alone.XXXXXX")  # beside the build, as deep as it, so that ccache knows the objects
trap 'rm -rf "$folder"' EXIT
"$cmake" -G Ninja -S "$source" -B "$folder" -DTREADLE_COMPILER=OFF -DTREADLE_TESTS=OFF -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER="$4" -DCMAKE_CXX_COMPILER="$5" >"$folder/log"
if grep -iE '^(llvm|lld|protobuf)' "$folder/CMakeCache.txt"; then exit 1; fi
"$cmake" --build "$folder" -j 1 --target treadle_runtime_shared treadle_runtime_static >"$folder/log" || { cat "$folder/log"; exit 1; }
"$cmake" --install "$folder" --component runtime --prefix "$folder/install" >/dev/null
library=$(find "$folder/install" -name libtreadle_runtime.so | head -n 1)
ldd "$library" | tee "$folder/libraries"
grep -q 'libstdc++' "$folder/libraries"
if grep -iE 'not found|llvm|lld|protobuf' "$folder/libraries"; then exit 1; fi
exit 0
