#!/usr/bin/env bash
# prepare.sh up|down: checks that a host can take part, then installs what overlay.sh and ray.sh need.
#
# Runs as root, with the settings on standard input. All failed checks are reported together, before anything is
# changed. `down` removes all that any script of this project has made on the host.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"
# shellcheck source=components/scripts/accelerators.sh
. "$here/accelerators.sh"
# shellcheck source=components/scripts/activation.sh
. "$here/activation.sh"

# The settings; empty ones do not apply to this host. Those of releases are read by name.
# shellcheck disable=SC2034
EASYTIER_VERSION='' EASYTIER_URL='' EASYTIER_SHA256_X86_64='' EASYTIER_SHA256_AARCH64=''
EASYTIER_IF_PRESENT='' OVERLAY_PORT='' RPC_PORT='' ADDRESS='' DEVICE='' REACHED='' GPUS=''
RAY_VERSION='' RAY_PYTHON='' RAY_VENV='' RAY_ACTIVATE='' RAY_PORTS='' RAY_INDEX_URL='' RAY_FIND_LINKS='' RAY_USER=''
RAY_LOCK_URL='' RAY_LOCK_SHA256=''
# shellcheck disable=SC2034
UV_VERSION='' UV_URL='' UV_SHA256_X86_64='' UV_SHA256_AARCH64=''
# Seconds that the first boot of a machine may take which was created for this cluster.
CLOUD_INIT_LIMIT=''

faults=()
activated_python=''
fault() { faults+=("$*"); }

main() {
  local action=$1
  read_settings EASYTIER_VERSION EASYTIER_URL EASYTIER_SHA256_X86_64 EASYTIER_SHA256_AARCH64 \
    EASYTIER_IF_PRESENT OVERLAY_PORT RPC_PORT ADDRESS DEVICE REACHED GPUS \
    RAY_VERSION RAY_PYTHON RAY_VENV RAY_ACTIVATE RAY_PORTS RAY_INDEX_URL RAY_FIND_LINKS RAY_USER RAY_LOCK_URL RAY_LOCK_SHA256 \
    UV_VERSION UV_URL UV_SHA256_X86_64 UV_SHA256_AARCH64 CLOUD_INIT_LIMIT
  case $action in
    up) up ;;
    down) down ;;
    *) fail "prepare.sh takes up or down, not $action" ;;
  esac
}

up() {
  local architecture fresh=true
  architecture=$(uname -m)
  wait_for_first_boot
  say "$HOST: checking"
  check "$architecture"
  # By itself no reason to stop: what it was to install may be there by now.
  if ((${#faults[@]})) && [[ -n $first_boot ]]; then fault "$first_boot"; fi
  if ((${#faults[@]})); then
    fail "this host can't take part yet; nothing was changed on it:$(printf '\n  - %s' "${faults[@]}")"
  fi
  one_at_a_time
  [[ -d $OPT ]] && fresh=false
  # What a first run leaves half done is undone: nothing is recorded of it, so nothing may stay.
  if $fresh; then trap 'undo $?' EXIT; fi
  install -d -m 0755 "$OPT" "$OPT/libexec" "$ETC" "$VAR" "$UNITS"
  install_scripts
  if [[ -n $EASYTIER_VERSION ]]; then install_release easytier EasyTier "$architecture" unpack_easytier; fi
  if [[ -n $RAY_VERSION ]]; then install_ray "$architecture"; fi
  if [[ $SERVICE_MANAGER == supervised ]]; then
    say "$HOST: warning: systemd does not run here, so EasyTier and Ray will not survive a reboot of the machine or a restart of the container; to bring them back, ${RLINF_CLOUD_EDGE_AGAIN:-set cluster.repair to a new value and $AGAIN}"
  fi
  report "$architecture"
  # Only what could be told to the end is recorded.
  trap - EXIT
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

undo() {
  (($1 == 0)) || remove_all
  exit "$1"
}

# --- checks -------------------------------------------------------------------------------------------------------

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
  local file ray missing
  id -u "$RAY_USER" >/dev/null 2>&1 || return 0
  file=$(mktemp)
  if activate "$RAY_USER" "$RAY_ACTIVATE" "$file"; then
    activated_python=$(activated_program 1 "$file")
    ray=$(activated_program 2 "$file")
    missing=${activated_python:+ray}
    missing=${missing:-python}
    if [[ -n $activated_python && -n $ray ]]; then
      check_existing_ray "$activated_python" "the environment that '$RAY_ACTIVATE' activates"
    else
      fault "after '$RAY_ACTIVATE', $missing is not to be found; correct ray.activate, or install Ray $RAY_VERSION there"
    fi
  else
    fault "'$RAY_ACTIVATE', evaluated by a login shell of $RAY_USER, activates nothing: $activation_said. Correct ray.activate"
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

# Reads the package's metadata: importing Ray takes seconds.
ray_version() { "$1" -I -c 'import importlib.metadata as m; print(m.version("ray"))' 2>/dev/null; }

python_version() { "$1" -I -c 'import platform; print(platform.python_version())'; }

# --- installation -------------------------------------------------------------------------------------------------

install_scripts() {
  local file
  local -a installed=()
  for file in "$here"/*; do
    case $file in
      */settings) continue ;;
      *.sh) install -m 0755 "$file" "$OPT/libexec/" ;;
      *) install -m 0644 "$file" "$OPT/libexec/" ;;
    esac
    installed+=("$OPT/libexec/${file##*/}")
  done
  note_written prepare "${installed[@]}"
}

# install_failed MESSAGE: whatever fails on a full disk fails for that reason, which the tools say in many ways.
install_failed() {
  if (($(df --output=avail -k "$OPT" | tail -n 1) < 32 * 1024)); then
    fail "the disk that $OPT is on is full; make room, 2048 MiB for a Ray environment, and $AGAIN"
  fi
  fail "$1"
}

# fetch URL SHA256 FILE WHAT: downloads and checks; the file is there only if it is the right one.
fetch() {
  local url=$1 sha256=$2 file=$3 what=$4 actual
  say "$HOST: downloading $what"
  if [[ $url == file://* ]]; then
    cp -- "${url#file://}" "$file.part" 2>/dev/null ||
      install_failed "$what can't be copied from ${url#file://}; put the file there on this host, or correct the URL in the settings"
  elif command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --connect-timeout 15 --speed-limit 1024 --speed-time 60 \
      --output "$file.part" -- "$url" || install_failed "$what can't be downloaded from $url; check the URL in the settings, and this host's way there"
  elif command -v wget >/dev/null; then
    wget --quiet --timeout=60 --tries=1 --output-document="$file.part" -- "$url" ||
      install_failed "$what can't be downloaded from $url; check the URL in the settings, and this host's way there"
  else
    python3 -I -c 'import shutil, sys, urllib.request as r
with r.urlopen(sys.argv[1], timeout=60) as source, open(sys.argv[2], "wb") as target:
    shutil.copyfileobj(source, target)' "$url" "$file.part" ||
      install_failed "$what can't be downloaded from $url; check the URL in the settings, and this host's way there"
  fi
  actual=$(sha256sum <"$file.part")
  actual=${actual%% *}
  if [[ $actual != "$sha256" ]]; then
    rm -f -- "$file.part"
    fail "$what from $url has the SHA-256 $actual and the settings say $sha256; nothing of it was used. If the file is right, correct the sha256 in the settings"
  fi
  mv -f "$file.part" "$file"
}

# checksum NAME ARCHITECTURE: the pinned SHA-256 of that release.
checksum() {
  local name=$1_SHA256_${2^^}
  [[ -n ${!name} ]] || fail "the settings hold no sha256 of ${1,,} for $2; add it"
  printf '%s' "${!name}"
}

expand() {
  local url=${1//'{version}'/$2}
  printf '%s' "${url//'{arch}'/$3}"
}

# install_release FOLDER LABEL ARCHITECTURE UNPACK: the pinned release in that folder of ours, unless it is there.
#
# The settings of it begin with the folder's name in capitals. UNPACK is called with a folder that holds `archive`.
install_release() {
  local folder=$OPT/$1 name=${1^^} label=$2 architecture=$3 unpack=$4 sha256 staging
  local version=${name}_VERSION url=${name}_URL
  sha256=$(checksum "$name" "$architecture")
  if [[ $(cat "$folder/.sha256" 2>/dev/null) == "$sha256" ]]; then return; fi
  staging=$(mktemp -d "$folder.XXXXXX")
  fetch "$(expand "${!url}" "${!version}" "$architecture")" "$sha256" "$staging/archive" "$label ${!version}"
  "$unpack" "$staging" || install_failed "the archive of $label can't be unpacked"
  rm -f "$staging/archive"
  chmod 0755 "$staging"
  printf '%s' "$sha256" >"$staging/.sha256"
  rm -rf "$folder"
  mv "$staging" "$folder"
  say "$HOST: $label ${!version} is installed"
}

unpack_easytier() {
  if command -v unzip >/dev/null; then
    unzip -q -j "$1/archive" -d "$1" || return
  else
    python3 -I -c 'import pathlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    for entry in archive.infolist():
        if not entry.is_dir():
            (pathlib.Path(sys.argv[2]) / pathlib.PurePosixPath(entry.filename).name).write_bytes(archive.read(entry))' \
      "$1/archive" "$1" || return
  fi
  chmod 0755 "$1/easytier-core" "$1/easytier-cli"
}

unpack_uv() { tar -xzf "$1/archive" -C "$1" --strip-components=1 --no-same-owner; }

# The managed environment has its version in its name, so that a change builds a new one beside the running one.
managed_venv() { printf '%s/ray-%s-python-%s%s' "$OPT" "$RAY_VERSION" "$RAY_PYTHON" "${RAY_LOCK_SHA256:+-${RAY_LOCK_SHA256:0:12}}"; }

install_ray() {
  [[ -z $RAY_VENV$RAY_ACTIVATE ]] || return 0
  local architecture=$1 venv
  venv=$(managed_venv)
  if [[ -e $venv/.complete ]]; then return; fi
  install_release uv uv "$architecture" unpack_uv
  local -a source=()
  if [[ -n $RAY_FIND_LINKS ]]; then source=(--no-index --find-links "$RAY_FIND_LINKS"); fi
  if [[ -n $RAY_INDEX_URL ]]; then source=(--default-index "$RAY_INDEX_URL"); fi
  say "$HOST: installing Ray $RAY_VERSION for Python $RAY_PYTHON"
  rm -rf "$venv"
  # No cache is kept, and no configuration of the host's is read: every node gets the same.
  local -x UV_NO_CONFIG=1 UV_CACHE_DIR=$OPT/uv-cache UV_PYTHON_INSTALL_DIR=$OPT/python UV_LINK_MODE=hardlink
  timeout 900 "$OPT/uv/uv" venv --quiet --python "$RAY_PYTHON" "$venv" >&2 ||
    install_failed "no Python $RAY_PYTHON for Ray; install it on the host, or let the host reach uv's downloads"
  local -a wanted=("ray[default]==$RAY_VERSION")
  if [[ -n $RAY_LOCK_URL ]]; then
    fetch "$RAY_LOCK_URL" "$RAY_LOCK_SHA256" "$venv/lock.txt" "the lock of Ray's environment"
    wanted=(--require-hashes --requirements "$venv/lock.txt")
  fi
  timeout 1800 "$OPT/uv/uv" pip install --quiet --python "$venv/bin/python" "${source[@]}" "${wanted[@]}" >&2 ||
    install_failed "Ray $RAY_VERSION can't be installed; check cluster.ray.index_url, find_links or lock, and this host's way there"
  [[ -z $RAY_LOCK_URL || $(ray_version "$venv/bin/python") == "$RAY_VERSION" ]] ||
    fail "the lock of Ray's environment, $RAY_LOCK_URL, holds Ray $(ray_version "$venv/bin/python") and the settings say $RAY_VERSION; correct cluster.ray.version or lock"
  rm -rf "$OPT/uv-cache"
  touch "$venv/.complete"
}

# One line of facts, on which the program and the other scripts build.
report() {
  local venv='' python='' ray='' interpreter=$activated_python
  if [[ -n $RAY_VERSION ]]; then
    # The path of an environment of the user's may hold spaces; ray.sh has it from the settings.
    if [[ -z $RAY_VENV$RAY_ACTIVATE ]]; then venv=$(managed_venv); fi
    interpreter=${interpreter:-${RAY_VENV:-$venv}/bin/python}
    python=$(python_version "$interpreter")
    ray=$(ray_version "$interpreter") || fail "Ray can't be imported by $interpreter"
  fi
  printf 'ready architecture=%s services=%s easytier=%s ray=%s python=%s venv=%s\n' "$1" "$SERVICE_MANAGER" \
    "$EASYTIER_VERSION" "$ray" "$python" "$venv"
}

# --- removal ------------------------------------------------------------------------------------------------------

down() {
  one_at_a_time
  if [[ $REACHED == overlay ]]; then
    remove_after_us
    printf 'removes itself\n'
    return
  fi
  remove_all
  printf 'removed\n'
}

# A removal ends the overlay, and over that we are logged in: it is left to a process of its own, which starts once
# this login's command has ended. It keeps the lock on the host, and has nothing to do with the login's session.
remove_after_us() {
  local copy command=$$ login=$PPID
  while ((login > 1)) && [[ $(<"/proc/$login/comm") != sshd* ]]; do
    command=$login
    login=$(awk '$1 == "PPid:" { print $2 }' "/proc/$login/status")
  done
  copy=$(mktemp -d /run/rlinf-cloud-edge-removal.XXXXXX)
  cp -- "$here"/* "$copy/"
  detached "$copy/remove.sh" "$command" "$login" "$HOST"
  say "$HOST: its removal goes on by itself once we have hung up"
}

remove_all() {
  # What an interrupted update may have left without a record goes as well.
  bash "$here/ray.sh" down <<<"HOST=$HOST" >/dev/null
  bash "$here/overlay.sh" down <<<"HOST=$HOST" >/dev/null
  rm -rf -- "$OPT" "$ETC" "$VAR" "$RUN"
  rm -f -- "$LOCK"
  say "$HOST: everything of rlinf-cloud-edge is removed"
}

main "$@"
