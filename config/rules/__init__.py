"""The rules that need more than one field, by theme.

Pure: settings in, faults out. The rules of RLinf's parser that are checked here are those of RLinf 0.3.0.
"""

from __future__ import annotations

from config.faults import Fault
from config.models import Cluster
from config.rules import addresses, aws, groups, names, ray, reach, rlinf, ssh
from config.rules.secret import faults_of_secret

__all__ = ["faults_of", "faults_of_secret"]


def faults_of(cluster: Cluster) -> list[Fault]:
    """Everything wrong with settings whose single fields are right."""
    return [
        *names.faults(cluster),
        *addresses.faults(cluster),
        *reach.faults(cluster),
        *ssh.faults(cluster),
        *groups.faults(cluster),
        *rlinf.faults(cluster),
        *ray.faults(cluster),
        *aws.faults(cluster),
    ]
