"""A policy pack for Pulumi: what must hold of what the program has on AWS, checked from outside of it."""
