"""Read the result sets of prepared SELECTs into row images like those of row events.

columns     the expression that selects each column, and its cell format
stream      turns bytes from a socket, split anywhere, into complete rows
rows        turns packets of rows into `event.images.Images`
conversion  kernels for DECIMAL, YEAR, dates, times and UUID
warm_up     compiles all of these kernels in advance

Invariant: a cell from here and the same cell of a WRITE_ROWS event give the same bytes in every target.
"""
