#!/usr/bin/env bash
# gate.sh up|down: on the head, proves that every node of the plan has joined and works; leaves the rendered config.
#
# Runs as root, with the settings on standard input.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

# NODES is what each node's ray.sh ended with: the gate opens anew whenever a Ray was started.
# shellcheck disable=SC2034
NODES='' RLINF_CONFIG_NAME='' RLINF_CONFIG_BASE64='' PLAN_BASE64=''

main() {
  local action=$1
  read_settings NODES RLINF_CONFIG_NAME RLINF_CONFIG_BASE64 PLAN_BASE64
  case $action in
    up) up ;;
    down) down ;;
    *) fail "gate.sh takes up or down, not $action" ;;
  esac
}

up() {
  install -d -m 0755 "$ETC/rlinf"
  put "$ETC/rlinf/$RLINF_CONFIG_NAME.yaml" 0644 root:root < <(base64 -d <<<"$RLINF_CONFIG_BASE64")
  # One of another name would be of earlier settings.
  find "$ETC/rlinf" -maxdepth 1 -name '*.yaml' ! -name "$RLINF_CONFIG_NAME.yaml" -delete
  base64 -d <<<"$PLAN_BASE64" | "$here/launch.sh" python "$here/gate.py"
}

down() {
  rm -rf -- "$ETC/rlinf"
  printf 'removed\n'
}

main "$@"
