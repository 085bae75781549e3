"""A whole cloud-edge world on one Linux machine, and the tools it needs where there is no wider Internet.

Nothing here is part of the Pulumi program: `config/` and `components/` never import it.
"""
