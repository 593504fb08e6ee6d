"""SmartNICs: agents that compute on a host's NIC, beside its transport."""
