"""Kinds of input from outside: a file for each, which draws hostile ones and reads them."""
