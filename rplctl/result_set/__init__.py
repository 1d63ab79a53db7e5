"""Read the result sets of prepared SELECTs into row images like those of row events.

    columns     a table model's columns → the selected expression of each column, and the format of its cells
    stream      bytes from a socket, split anywhere → bytes of rows, and the packet that ends them
    rows        packets of rows → `event.images.Images`
    conversion  kernels for cells with another form: DECIMAL, YEAR, dates and times, UUID
    warm_up     compiles all of these kernels in advance

Invariant: a cell from here and the same cell of a WRITE_ROWS event give the same bytes in every target.
"""
