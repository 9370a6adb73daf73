"""Trainings run by a vendor: the parts that all such vendors share. Each vendor has a package of its own beside this.

The calls, the parsing of answers, the rows, the estimate and the steps of a job are here; `VendorClient` and `Vendor`
define what a vendor adds.
"""
