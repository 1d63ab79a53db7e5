"""Start, watch and stop the processes of a channel's threads, for the commands.

start_request  the parameters and the result of a start
preparation    the steps before the threads start: resolve the records, set the options
continued      a restored target of another source continues by its GTIDs
child          start receiver and applier, wait until they run, stop them
start_shared   several channels whose appliers share one process
service        the notifications to systemd
supervise      wait for started threads (`--foreground`, `--until-synced`)
brought_up     threads that run only while another command needs them
thread_report  the report of a thread, and whether it is fresh
"""
