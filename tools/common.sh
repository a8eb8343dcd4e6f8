# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What the shell tools share: how they speak. Sourced, with `label` set to the name of the tool.

bold='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi

say() { printf '%s[%s]%s %s\n' "$bold" "$label" "$plain" "$*"; }
fail() {
  printf '%s[%s]%s %s\n' "$bold" "$label" "$plain" "$*" >&2
  exit 1
}

# watch LOG PATTERN COMMAND ...: runs COMMAND with its output in LOG; every 15 seconds shows LOG's last line that matches PATTERN.
watch() {
  local log=$1 pattern=$2 start=$SECONDS next=$((SECONDS + 15)) pid line
  shift 2
  "$@" >"$log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if [ "$SECONDS" -ge "$next" ]; then
      next=$((SECONDS + 15))
      line=$(grep -E "$pattern" "$log" | tail -n 1 | cut -c 1-100) || true
      say "  $((SECONDS - start)) s  $line"
    fi
  done
  wait "$pid"
}
