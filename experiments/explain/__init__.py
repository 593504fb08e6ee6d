"""Why a row took longer than its bound: a log of its packets, and the path of causes through it."""
