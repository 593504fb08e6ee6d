"""Networks whose hosts have NICs that compute."""
