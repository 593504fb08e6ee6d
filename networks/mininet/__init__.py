"""Networks of Linux namespaces and veth pairs, as Mininet builds them, with P4 switches."""
