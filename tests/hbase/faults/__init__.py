"""Faults of a real HBase cluster under writers, and a judge of what they were told.

writer    a process that transfers money, and writes down what it was told of each transfer
judge     what must hold of the tables, the views and the notes at the end, and all the time
__main__  the run: a cluster, writers, and faults in an order that the seed says
"""
