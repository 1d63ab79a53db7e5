"""The processes of a channel's threads, as the commands see them: begun, watched, ended.

start_request  what a start is asked for, and what it says
preparation    what comes before the threads: records settled, options told
continued      a restored target of another source goes on by the GTIDs in it
child          starts receiver and applier, waits until they run, stops them
start_shared   several channels whose appliers share one process
service        what systemd is told of it
supervise      stays with what was started (`--foreground`, `--until-synced`)
brought_up     threads for as long as another command needs them
thread_report  what a thread says of itself, and whether it is fresh
"""
