"""Parse, build and scan events of the binary log (format v4 of MySQL and MariaDB), with kernels over raw bytes.

No module here opens a socket. Only mapped and warm_up open files, and Numba stores compiled kernels in
the folder that kernel_cache chooses.

Kernels, and the fields of an event:

kernel_cache        chooses the folder of the compiled kernels
jit                 compiles functions over bytes with Numba, once per machine
warm_up             compiles all kernels in advance with a few recorded events
bytes_at            kernels that read numbers, or compare or copy bytes
cursor              reads fields, after it has checked the remaining length
types               the table of all event types and their properties

From received bytes to complete events:

packets             converts packets of a dump to events, and events to packets
header              parses and builds the first 19 bytes of an event
scan                finds the boundaries of events in raw bytes
checksum            verifies the checksums of many events at once
checksum_trailer    computes, appends, removes or checks one event's checksum
format_description  the first event of every file, which defines the others' format
relocate            copies events to another offset in another file
mapped              maps a log file that another process may extend or cut

From events to transactions:

event_classes       the classes of event types that the group kernel distinguishes
query_words         recognizes statements that begin or end a transaction
group_position      computes the position in the source's log, event by event
group_kernel        the state machine that finds transactions in raw bytes
groups              the public interface of this state machine
open_group          follows the transaction that is not yet completely received

The contents of single events:

payload             decompresses compressed transactions, rows events and queries
inflate             decompresses the compressed part of a MariaDB event
events              parses an event into the dataclass of its type
gtid_event          parses the event that begins a transaction
gtid                the GTID sets of MySQL and the GTID states of MariaDB
gtid_arrays         reads the GTIDs of many events into arrays
query               parses a statement and its session variables
table_map           parses the table and the column formats of rows events

From rows events to the cells of a column:

split               cuts row transactions into parts, one for each Spark task
maps_in_force       finds the table map that belongs to each rows event
distinct_ranges     finds distinct table maps, so that each is parsed once
rows                finds the row images in rows events
column              the format and the width of a column's cells
images              finds the offset of every cell in row images
cells               copies the cells of one column out of row images

From cells to net changes and values:

net_change          the effect of many row changes on each key
multiset            the effect of row changes on a table without a key
decimal             converts the packed format of DECIMAL to text
temporal            converts dates and times to the server's text
inet_uuid           converts MariaDB's INET4, INET6 and UUID to text
charset             decodes the bytes of each character set to text
large_text          a text that is too large for memory, in parts
json                converts binary JSON to text, and applies partial updates
values              converts the cells of one column to Python values
text_matrix         the texts of many cells as one matrix of bytes
fields              encodes columns as rows of text that targets load
"""
