"""Everything reusable, computed before a question comes.

The order of flow: catalog -> snapshot -> profile -> purpose -> embedding -> inclusion
-> compatibility;
refresh decides what is due and runs it.
"""
