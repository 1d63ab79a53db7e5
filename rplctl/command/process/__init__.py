"""Start, watch and stop the processes of a channel's threads, for the commands.

start_request  the parameters and the result of a start
preparation    the steps before the threads start: resolve the records, collect the options of the applier
continued      the step by which a restored target of another source continues by its GTIDs
child          the processes themselves: start receiver and applier, wait until they run, stop them
start_shared   the start of several channels whose appliers share one process
service        the notifications to systemd
supervise      the wait for started threads (`--foreground`, `--until-synced`)
brought_up     the threads that run only while another command needs them
thread_report  the state of a thread, and whether its report is fresh
"""
