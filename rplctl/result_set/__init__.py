"""Result sets of prepared SELECTs, read as the row images that row events have.

    columns     a table model's columns → what is selected of each, and the format of its cells
    stream      bytes from a socket, cut anywhere → bytes of rows, and the packet that ends them
    rows        packets of rows → `event.images.Images`
    conversion  kernels for the cells whose form differs: DECIMAL, YEAR, dates and times, UUID
    warm_up     all of these kernels compiled, before rows come

Invariant: a cell read here and the same cell of a WRITE_ROWS event give the same bytes to every target.
"""
