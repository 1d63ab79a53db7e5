"""`check`, and what it shares with `doctor` and `start`: what can be found about a channel, without changing anything.

verb           the command: one verdict on a channel, and why
findings       codes with their levels: the permanent words
threads        do receiver and applier run, say something, keep up?
repository     do the stored records agree?
relay_log      do relay logs, their index and the positions agree?
ends           the target and the source: are they there, have they what is needed?
skipped        what the source has that the target cannot have: triggers, views, routines, events
clone          how far is a copy of tables, and does it move?
verify         what did the last verify find, and how old is it?
progress       does the receiver keep up with the source's log?
ahead          what will happen if all goes on as it does: purged logs, a full disk
source_end     where the source's log ends now
folder_end     the same of a folder of binary logs;  last_commit  where its newest log ends with a commit
sync_record    when a channel was last known to have all that its source had
"""
