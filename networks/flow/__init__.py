"""Flows in virtual time: messages share links by max-min fair rates, without packets."""
