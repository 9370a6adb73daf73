"""Trainings that a vendor runs: what all such vendors share. Each vendor's own is in a package of its name beside this.

The calls, what is read of their answers, the rows, the estimate, and the steps of a job are here; `VendorClient` and
`Vendor` say what a vendor adds.
"""
