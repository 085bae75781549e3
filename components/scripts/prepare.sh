#!/usr/bin/env bash
# prepare.sh up|down: installs what overlay.sh and ray.sh need on a host that has passed its checks.
#
# Runs as root, with the settings on standard input. `down` removes all that any script of this project has made on the
# host.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"
# shellcheck source=components/scripts/activation.sh
. "$here/activation.sh"

# The settings; empty ones do not apply to this host. Those of releases are read by name.
# shellcheck disable=SC2034
EASYTIER_VERSION='' EASYTIER_URL='' EASYTIER_SHA256_X86_64='' EASYTIER_SHA256_AARCH64=''
RAY_VERSION='' RAY_PYTHON='' RAY_VENV='' RAY_ACTIVATE='' RAY_INDEX_URL='' RAY_FIND_LINKS='' RAY_USER=''
RAY_LOCK_URL='' RAY_LOCK_SHA256=''
# `overlay` where we are logged in over the overlay.
REACHED=''
# shellcheck disable=SC2034
UV_VERSION='' UV_URL='' UV_SHA256_X86_64='' UV_SHA256_AARCH64=''

main() {
  local action=$1
  read_settings EASYTIER_VERSION EASYTIER_URL EASYTIER_SHA256_X86_64 EASYTIER_SHA256_AARCH64 REACHED \
    RAY_VERSION RAY_PYTHON RAY_VENV RAY_ACTIVATE RAY_INDEX_URL RAY_FIND_LINKS RAY_USER RAY_LOCK_URL RAY_LOCK_SHA256 \
    UV_VERSION UV_URL UV_SHA256_X86_64 UV_SHA256_AARCH64
  case $action in
    up) up ;;
    down) down ;;
    *) fail "prepare.sh takes up or down, not $action" ;;
  esac
}

up() {
  local architecture fresh=true
  architecture=$(uname -m)
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

undo() {
  (($1 == 0)) || remove_all
  exit "$1"
}

# --- installation -------------------------------------------------------------------------------------------------

install_scripts() {
  local file
  local -a installed=()
  for file in "$here"/*; do
    case $file in
      # What the settings are read from, and what checks came with them: in a join script they come together.
      */settings | */check.sh | */accelerators.sh) continue ;;
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
  "$venv/bin/python" -I "$here/compile_ray.py" >&2 || say "$HOST: warning: Ray is not compiled, and starts slowly"
  touch "$venv/.complete"
}

python_version() { "$1" -I -c 'import platform; print(platform.python_version())'; }

# One line of facts, on which the program and the other scripts build.
report() {
  local venv='' python='' ray='' interpreter file
  if [[ -n $RAY_VERSION ]]; then
    # The path of an environment of the user's may hold spaces; ray.sh has it from the settings.
    if [[ -z $RAY_VENV$RAY_ACTIVATE ]]; then venv=$(managed_venv); fi
    interpreter=${RAY_VENV:-$venv}/bin/python
    if [[ -n $RAY_ACTIVATE ]]; then
      file=$(mktemp)
      activate "$RAY_USER" "$RAY_ACTIVATE" "$file" || fail "$(activates_nothing "$RAY_USER" "$RAY_ACTIVATE")"
      interpreter=$(activated_program 1 "$file")
      rm -f -- "$file"
    fi
    ray=$(ray_version "$interpreter") || fail "Ray can't be imported by ${interpreter:-python}"
    python=$(python_version "$interpreter")
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
