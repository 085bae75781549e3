# shellcheck shell=bash disable=SC2154 # `fault` and `say` come from where it is sourced
# How many accelerators a host has, against what the settings say. Sourced by check.sh.
#
# RLinf counts what the vendors' libraries find (`rlinf/scheduler/hardware/accelerators` in RLinf 0.3.0), and places on
# what it counts: another number is another placement. nvidia-smi comes with NVIDIA's library, NVML, and finds the same.

# Where the kernel shows them.
accelerators_proc=/proc
accelerators_sys=/sys
accelerators_dev=/dev

# pci_devices VENDOR: how many display or compute devices of that vendor (0x10de) are on the PCI bus.
pci_devices() {
  local device count=0
  for device in "$accelerators_sys"/bus/pci/devices/*; do
    # Classes 03xx are display controllers, 12xx processing accelerators (linux/pci_ids.h).
    if [[ $(cat "$device/vendor" 2>/dev/null) == "$1" && $(cat "$device/class" 2>/dev/null) == 0x@(03|12)* ]]; then
      count=$((count + 1))
    fi
  done
  printf '%d' "$count"
}

# count_accelerators: sets `accelerators`, `accelerators_told_by`, and, where some can't be used, `accelerators_trouble`.
count_accelerators() {
  local listed node
  accelerators=0 accelerators_told_by='' accelerators_trouble=''
  if command -v nvidia-smi >/dev/null; then
    if listed=$(timeout 60 nvidia-smi -L 2>&1); then
      accelerators=$(grep -c '^GPU [0-9]*:' <<<"$listed") || true
      accelerators_told_by="nvidia-smi -L lists"
      if ((accelerators)); then return; fi
    else
      accelerators_trouble="nvidia-smi -L fails and says: ${listed%%$'\n'*}"
    fi
  elif compgen -G "$accelerators_proc/driver/nvidia/gpus/*" >/dev/null; then
    accelerators_trouble="NVIDIA's kernel driver is loaded, and nvidia-smi is missing; install the driver's programs of the same version, or start the container with --gpus all"
  elif (($(pci_devices 0x10de))); then
    accelerators_trouble="it has $(pci_devices 0x10de) NVIDIA devices and no driver for them; install NVIDIA's driver"
  fi
  for node in "$accelerators_sys"/class/kfd/kfd/topology/nodes/*/gpu_id; do
    if [[ $(cat "$node" 2>/dev/null) == [1-9]* ]]; then accelerators=$((accelerators + 1)); fi
  done
  if ((accelerators)); then
    accelerators_told_by="AMD's driver has"
    if [[ ! -e $accelerators_dev/kfd ]]; then
      accelerators=0
      accelerators_trouble="AMD's driver is loaded, and /dev/kfd is missing; start the container with --device /dev/kfd --device /dev/dri"
    fi
    return
  fi
  for node in "$accelerators_dev"/davinci[0-9]*; do
    if [[ -e $node ]]; then accelerators=$((accelerators + 1)); fi
  done
  if ((accelerators)); then
    accelerators_told_by="Ascend's driver has"
  elif [[ -z $accelerators_trouble ]] && (($(pci_devices 0x1002))); then
    accelerators_trouble="it has $(pci_devices 0x1002) AMD devices that the driver does not compute on; install AMD's driver (ROCm)"
  fi
}

# check_accelerators WANTED: a fault unless there are that many; where the settings don't say (''), a warning of some.
check_accelerators() {
  count_accelerators
  if [[ -z $1 ]]; then
    if ((accelerators)); then
      say "$HOST: warning: $accelerators_told_by $accelerators accelerators, and the settings don't say so; RLinf places on them before hosts without any: add gpus: $accelerators"
    fi
  elif ((accelerators == $1)); then
    return
  elif ((accelerators > $1)); then
    fault "the settings say gpus: $1, and $accelerators_told_by $accelerators; RLinf would place on all of them. Write gpus: $accelerators, or show the container fewer"
  elif ((accelerators)); then
    fault "the settings say gpus: $1, and $accelerators_told_by only $accelerators; write gpus: $accelerators, or see why the others are missing (dmesg, the container's --gpus)"
  elif [[ -n $accelerators_trouble ]]; then
    fault "the settings say gpus: $1, and none can be used: $accelerators_trouble"
  else
    fault "the settings say gpus: $1, and no accelerator is found (NVIDIA, AMD, Ascend); correct gpus, or install the driver. A container is started with --gpus all"
  fi
}
