#!/usr/bin/env bash
# enter.sh SCRIPT ARGUMENT...: runs as the login user. Becomes root, unpacks the scripts that follow on standard input,
# and hands over to one of them; none of them stays.
#
# Standard input holds, in this order: this file, the settings (KEY=value, one a line), a line "scripts", and a
# gzipped tar archive in base64. bash reads a script from a pipe byte by byte, so the rest is left to main.
set -euo pipefail

main() {
  local script=$1 line HOST=this-host
  local -a root=()
  shift
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  while IFS= read -r line && [[ $line != scripts ]]; do
    printf '%s\n' "$line"
    if [[ $line == HOST=* ]]; then HOST=${line#HOST=}; fi
  done >"$work/settings"
  base64 -d | tar -xz -C "$work"
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      printf '%s: %s is not root and there is no sudo. Install sudo, or log in as root (ssh.user).\n' \
        "$HOST" "$(id -un)" >&2
      return 1
    fi
    if ! sudo -n true </dev/null 2>/dev/null; then
      printf '%s: %s may not use sudo without a password. Allow it with "%s ALL=(ALL) NOPASSWD: ALL" in %s, or log in as root (ssh.user).\n' \
        "$HOST" "$(id -un)" "$(id -un)" /etc/sudoers.d/rlinf-cloud-edge >&2
      return 1
    fi
    root=(sudo -n)
  fi
  "${root[@]}" bash "$work/$script" "$@" <"$work/settings"
  exit
}

# The last line: what follows it on standard input is for main, which does not return.
main "$@"
