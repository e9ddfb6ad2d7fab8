"""The stack in containers on one machine: its secrets, certificates and first start."""
