"""The initial copy of a living source, a chunk at a time (man rplctl-design).

    bounds       a table's keys → chunks that partition them; the server compares, we never do
    chunk_file   one chunk's rows as they came, with the place of the log they belong to, whole or not at all

The rules of the copy are modelled, with each rule's loss, in tests/clone/model.py.
"""
