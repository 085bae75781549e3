#!/usr/bin/env bash
# check.sh: checks that a host can take part, and changes nothing on it.
#
# Runs as root, with the settings on standard input, from a temporary folder. All failed checks are reported together.
# A host that takes part already passes: what its own services hold is no fault.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"
# shellcheck source=components/scripts/accelerators.sh
. "$here/accelerators.sh"
# shellcheck source=components/scripts/activation.sh
. "$here/activation.sh"

# The settings; empty ones do not apply to this host. The checksums are read by name.
# shellcheck disable=SC2034
EASYTIER_VERSION='' EASYTIER_SHA256_X86_64='' EASYTIER_SHA256_AARCH64=''
EASYTIER_IF_PRESENT='' OVERLAY_PORT='' RPC_PORT='' ADDRESS='' DEVICE='' GPUS=''
RAY_VERSION='' RAY_VENV='' RAY_ACTIVATE='' RAY_PORTS='' RAY_USER=''
# Seconds that the first boot of a machine may take which was created for this cluster.
CLOUD_INIT_LIMIT=''

faults=()
fault() { faults+=("$*"); }

main() {
  read_settings EASYTIER_VERSION EASYTIER_SHA256_X86_64 EASYTIER_SHA256_AARCH64 EASYTIER_IF_PRESENT OVERLAY_PORT \
    RPC_PORT ADDRESS DEVICE GPUS RAY_VERSION RAY_VENV RAY_ACTIVATE RAY_PORTS RAY_USER CLOUD_INIT_LIMIT
  wait_for_first_boot
  say "$HOST: checking"
  check "$(uname -m)"
  # By itself no reason to stop: what it was to install may be there by now.
  if ((${#faults[@]})) && [[ -n $first_boot ]]; then fault "$first_boot"; fi
  if ((${#faults[@]})); then
    fail "this host can't take part yet; nothing was changed on it:$(printf '\n  - %s' "${faults[@]}")"
  fi
  printf 'passed\n'
}

# What went wrong in the first boot; cloud-init says it until the machine boots again.
first_boot=''

# sshd answers before cloud-init has installed what the checks look for.
wait_for_first_boot() {
  local code=0
  if [[ -z $CLOUD_INIT_LIMIT ]] || ! command -v cloud-init >/dev/null; then return; fi
  say "$HOST: waiting for the end of its first boot (cloud-init)"
  timeout "$CLOUD_INIT_LIMIT" cloud-init status --wait >/dev/null 2>&1 || code=$?
  case $code in
    0 | 2) ;; # 2: done, with warnings
    124) fail "its first boot has not ended after $CLOUD_INIT_LIMIT s: $(cloud_init_says). See /var/log/cloud-init.log there, and run pulumi up again" ;;
    *)
      first_boot="its first boot failed: $(cloud_init_says); see /var/log/cloud-init-output.log there"
      say "$HOST: warning: $first_boot"
      ;;
  esac
}

# It ends with an error where the first boot did.
cloud_init_says() { { cloud-init status --long 2>&1 || true; } | tr -s '\n' ' ' | cut -c -600; }

check() {
  local tool
  case $1 in
    x86_64 | aarch64) ;;
    *) fault "its processor is $1; EasyTier and Ray are installed for x86_64 and aarch64 only" ;;
  esac
  for tool in ip:iproute2 awk:gawk tar:tar flock:util-linux runuser:util-linux base64:coreutils timeout:coreutils; do
    command -v "${tool%:*}" >/dev/null || fault "the command ${tool%:*} is missing; install ${tool#*:}"
  done
  if ! command -v curl >/dev/null && ! command -v wget >/dev/null && ! command -v python3 >/dev/null; then
    fault "nothing to download with; install curl"
  fi
  if [[ -n $EASYTIER_VERSION ]] && ! command -v unzip >/dev/null && ! command -v python3 >/dev/null; then
    fault "nothing to unpack a zip archive with; install unzip"
  fi
  if [[ $SERVICE_MANAGER == supervised ]] && ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    fault "systemd does not run here, and without it Python 3.8 or later is needed to keep the services running; install python3"
  fi
  if [[ -n $EASYTIER_VERSION ]]; then check_tun; else check_address; fi
  if [[ $EASYTIER_IF_PRESENT == refuse ]]; then check_other_easytier "$1"; fi
  check_ports
  if [[ $(getent ahostsv4 localhost 2>/dev/null) != 127.* ]]; then
    fault "localhost does not resolve to 127.0.0.1, which Ray needs; add the line '127.0.0.1 localhost' to /etc/hosts"
  fi
  if [[ -n $RAY_VERSION ]]; then check_ray; fi
}

check_tun() {
  if [[ ! -c /dev/net/tun ]]; then
    fault "/dev/net/tun is missing; run 'modprobe tun', or start the container with --device /dev/net/tun:/dev/net/tun"
  elif ! (exec 3<>/dev/net/tun) 2>/dev/null; then
    fault "/dev/net/tun can't be opened; allow the device, in a container with --device /dev/net/tun:/dev/net/tun"
  fi
  # CAP_NET_ADMIN is bit 12 (linux/capability.h).
  local effective
  effective=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
  if (((16#$effective >> 12 & 1) == 0)); then
    fault "network devices can't be made here (no CAP_NET_ADMIN); start the container with --cap-add NET_ADMIN --cap-add NET_RAW"
  fi
}

# check_other_easytier ARCHITECTURE: another EasyTier than the pinned one, here from before or of others'.
check_other_easytier() {
  local name=EASYTIER_SHA256_${1^^} path ours=$OPT/easytier/easytier-core process
  local -a argv
  if [[ -e $ours && $(cat "$OPT/easytier/.sha256" 2>/dev/null) != "${!name:-}" ]]; then
    fault "an EasyTier other than $EASYTIER_VERSION is installed in $OPT/easytier, and easytier.if_present says refuse; let it be replaced with if_present: replace"
  fi
  path=$(command -v easytier-core || true)
  if [[ -n $path ]]; then
    fault "another EasyTier is installed, $path, and easytier.if_present says refuse; remove it, or leave it alone with if_present: replace"
  fi
  for process in /proc/[0-9]*; do
    mapfile -d '' -t argv < <(cat "$process/cmdline" 2>/dev/null) || continue
    # An interpreter comes before the program that it runs.
    for path in "${argv[0]:-}" "${argv[1]:-}"; do
      if [[ ${path##*/} == easytier-core && $path != "$ours" ]]; then
        fault "another EasyTier runs, $path (process ${process#/proc/}), and easytier.if_present says refuse; stop it, or leave it alone with if_present: replace"
      fi
    done
  done
}

# Without an overlay, Ray is bound to an address that the host has itself.
check_address() {
  if ! has_address "$DEVICE" "$ADDRESS"; then
    fault "the network device $DEVICE has no address $ADDRESS, at which the other nodes are to reach this host; 'ip -brief address' shows what there is. Correct address and device in the settings"
  fi
}

# A port is taken when a process listens on it that is not one of our own services.
check_ports() {
  local port
  if [[ -n $EASYTIER_VERSION ]] && ! is_present rlinf-easytier.service; then
    for port in $OVERLAY_PORT "$RPC_PORT"; do report_taken "$port" EasyTier; done
  fi
  if [[ -n $RAY_PORTS ]] && ! is_present rlinf-ray.service; then
    for port in $RAY_PORTS; do report_taken "$port" Ray; done
  fi
}

report_taken() {
  local hex
  printf -v hex '%04X' "$1"
  # Field 2 is the local address, field 4 the state; 0A is LISTEN (Documentation/networking/proc_net_tcp.rst).
  if awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }' \
    /proc/net/tcp /proc/net/tcp6 2>/dev/null; then
    fault "TCP port $1, which $2 needs, is taken by another program; stop that, or choose another port in the settings"
  fi
}

check_ray() {
  command -v nft >/dev/null || fault "the command nft is missing, which keeps Ray's ports off other networks; install nftables"
  id -u "$RAY_USER" >/dev/null 2>&1 || fault "the account $RAY_USER, which Ray is to run as, does not exist"
  check_accelerators "$GPUS"
  if [[ -n $RAY_ACTIVATE ]]; then
    check_activated_ray
  elif [[ -n $RAY_VENV ]]; then
    if [[ -x $RAY_VENV/bin/python && -x $RAY_VENV/bin/ray ]]; then
      check_existing_ray "$RAY_VENV/bin/python" "$RAY_VENV"
    else
      fault "$RAY_VENV holds no bin/python and bin/ray; correct ray.venv, or install Ray $RAY_VERSION there"
    fi
  else
    local free
    free=$(df --output=avail -k /opt 2>/dev/null | tail -n 1)
    if [[ ! -d $OPT ]] && ((free < 2 * 1024 * 1024)); then
      fault "/opt has $((free / 1024)) MiB free, and the Ray environment needs 2048 MiB; make room"
    fi
  fi
}

check_activated_ray() {
  local file python ray missing
  id -u "$RAY_USER" >/dev/null 2>&1 || return 0
  file=$(mktemp)
  if activate "$RAY_USER" "$RAY_ACTIVATE" "$file"; then
    python=$(activated_program 1 "$file")
    ray=$(activated_program 2 "$file")
    missing=${python:+ray}
    missing=${missing:-python}
    if [[ -n $python && -n $ray ]]; then
      check_existing_ray "$python" "the environment that '$RAY_ACTIVATE' activates"
    else
      fault "after '$RAY_ACTIVATE', $missing is not to be found; correct ray.activate, or install Ray $RAY_VERSION there"
    fi
  else
    fault "$(activates_nothing "$RAY_USER" "$RAY_ACTIVATE")"
  fi
  rm -f -- "$file"
}

# check_existing_ray PYTHON WHAT: that Python has the Ray of the settings.
check_existing_ray() {
  local found
  found=$(ray_version "$1") || {
    fault "Ray can't be imported by $1; install ray==$RAY_VERSION there"
    return
  }
  if [[ $found != "$RAY_VERSION" ]]; then
    fault "$2 has Ray $found and the settings say $RAY_VERSION; change cluster.ray.version, or install ray==$RAY_VERSION there"
  fi
}

main "$@"
