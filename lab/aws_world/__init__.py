"""An AWS account for the lab: moto's, whose instances are booted lab hosts behind security groups that are enforced.

`account` is the account itself, `catalog` what it has from the start; `reconciler` makes hosts of its instances, with
`plan` (pure: what there should be), `cloud_init` (what an instance has on its disk) and `firewall` (pure: the rules of
the network it is in). `server` is the process they all run in.
"""
