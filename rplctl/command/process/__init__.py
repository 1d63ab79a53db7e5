"""Start, watch and stop the processes of a channel's threads, for the commands.

start_request  the parameters and the result of a start
preparation    resolves the records and sets options, before the threads start
continued      lets a restored target of another source continue by GTID
child          starts receiver and applier, waits until they run, stops them
start_shared   starts several channels whose appliers share one process
service        the notifications to systemd about a start
supervise      waits for started threads (`--foreground`, `--until-synced`)
brought_up     runs threads only while another command needs them
thread_report  the report of a thread, and whether it is fresh
"""
