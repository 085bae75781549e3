"""A stand-in for upstream's `easytier-core` and `easytier-cli`, over the EasyTier core that PyPI carries.

The network is the real one: PyPI's `easytier-pyo3` holds EasyTier's own core, compiled. What is written here
is what upstream's two executables put around it: options, environment variables, the configuration file, the
RPC portal, exit codes. Upstream's behaviour was read from its sources, tag v2.6.4.

What it deliberately does not do: config servers, several networks in one process, credentials and secure
mode, port forwards, the WireGuard portal, proxied networks, file logs. Their options are refused, never
ignored. The RPC portal speaks a protocol of its own, so that upstream's `easytier-cli` can't ask it, nor ours
upstream's.

It runs on Debian 12's `/usr/bin/python3` (3.11) with nothing but the standard library, and imports nothing
from the rest of this project.
"""

EASYTIER_VERSION = "2.6.4-81487c36"
"""What `easytier_pyo3.version()` of the locked wheel says; the build checks it."""
