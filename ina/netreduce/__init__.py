"""NetReduce: switches add up the data of RoCEv2 connections that form a ring."""
