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
NODES='' RLINF_CONFIG_NAME='' RLINF_CONFIG_BASE64='' PLAN_BASE64='' MEMBERS='' SECRET=''

main() {
  local action=$1
  read_settings NODES RLINF_CONFIG_NAME RLINF_CONFIG_BASE64 PLAN_BASE64 MEMBERS SECRET
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
  warn_of_former_members
}

# Whoever once joined knows the network secret until there is a new one. Noted are the hosts that have had the present
# one, of which SECRET is the fingerprint: first line the fingerprint, then a host a line.
warn_of_former_members() {
  local known=$VAR/members host
  local -a before=() former=()
  if [[ $(head -n 1 "$known" 2>/dev/null) == "$SECRET" ]]; then mapfile -t before < <(tail -n +2 "$known"); fi
  for host in ${before[@]+"${before[@]}"}; do
    [[ " $MEMBERS " == *" $host "* ]] || former+=("$host")
  done
  # shellcheck disable=SC2086 # names of hosts, without a space or a wildcard
  put "$known" 0600 root:root < <(printf '%s\n' "$SECRET" $MEMBERS ${former[@]+"${former[@]}"})
  if ((${#former[@]})); then
    say "gate: warning: no longer in the cluster, but with its network secret: ${former[*]}. If one of them may be in other hands, set a new networkSecret and run pulumi up; it reaches all others at once"
  fi
}

down() {
  rm -rf -- "$ETC/rlinf" "$VAR/members"
  printf 'removed\n'
}

main "$@"
