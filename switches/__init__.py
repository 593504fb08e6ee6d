"""Switches that run P4: BMv2 JSON compiled to handlers, tables, control plane, queues."""
