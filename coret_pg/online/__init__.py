"""What happens when a question comes: candidates -> selection -> adjustment -> schema slice.

`retrieve` is the one path through them.
"""
