"""Work on the instance folder as a whole, for the commands.

backup_lock    the locks of a backup (lock-instance, lock-tables)
units          the systemd units of an instance
manifest       the list of a backup's contents
takes_effect   the time at which a changed option takes effect
compiled_code  the folder of compiled code
"""
