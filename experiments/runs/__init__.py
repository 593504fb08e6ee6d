"""One engine of runs: options resolved once, a session, results, table, page, figures, sweeps."""
