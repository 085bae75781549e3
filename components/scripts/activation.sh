# shellcheck shell=bash disable=SC2034 # what is set here is used where it is sourced
# The environment that a user's activation command makes, such as `source switch_env openvla`. Sourced by check.sh,
# prepare.sh and ray.sh.

readonly ACTIVATION_SECONDS=60
activation_said=''

# activate USER COMMAND FILE: evaluates the command in a login shell of that account, with nothing of this one's
# environment, and writes to the file what then is `python`, what is `ray`, and every variable, each ended by NUL. False
# where it fails; `activation_said` then says why.
activate() {
  local user=$1 command=$2 file=$3 home status=0 said
  home=$(getent passwd "$user" | cut -d : -f 6)
  said=$(mktemp)
  # Its streams are files: what it may leave running would hold the login's. 9 is the lock of lib.sh.
  # shellcheck disable=SC2016 # expanded by the inner bash
  (
    cd "$home" 2>/dev/null || cd /
    exec timeout --kill-after=5 "$ACTIVATION_SECONDS" runuser -u "$user" -- env -i HOME="$home" USER="$user" \
      LOGNAME="$user" SHELL=/bin/bash LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      bash --login -c 'eval "$1" || exit
        unset -f command type printf
        printf "%s\0" "$(type -P python)" "$(type -P ray)" >&8 && exec /usr/bin/env -0 >&8' activate "$command"
  ) </dev/null >"$said" 2>&1 8>"$file" 9>&- || status=$?
  activation_said=$(tail -n 3 "$said" | tr -c '[:print:]\n' '?' | paste -sd ' ')
  rm -f -- "$said"
  if ((status == 124 || status == 137)); then
    activation_said="it takes more than $ACTIVATION_SECONDS s"
  elif ((status)); then
    activation_said="it ends with $status${activation_said:+: $activation_said}"
  elif [[ ! -s $file ]]; then
    activation_said="it ends the shell it runs in${activation_said:+: $activation_said}"
    status=1
  fi
  return "$status"
}

# activates_nothing USER COMMAND: the fault, in words, once `activate` was false.
activates_nothing() {
  printf "'%s', evaluated by a login shell of %s, activates nothing: %s. Correct ray.activate" "$2" "$1" "$activation_said"
}

# activated_program NUMBER FILE: of what `activate` has written, the path of python (1) or ray (2).
activated_program() { sed -z -n "$1p" "$2" | tr -d '\0'; }
