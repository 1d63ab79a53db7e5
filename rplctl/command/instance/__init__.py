"""Commands on the instance folder as a whole.

backup_lock    the locks of a backup (lock-instance, lock-tables)
units          systemd's files for it
manifest       what a backup holds
takes_effect   when an option that is changed takes effect
compiled_code  the folder of compiled code
"""
