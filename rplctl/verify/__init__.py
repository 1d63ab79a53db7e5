"""Is the copy right, while it runs: source and target compared row by row (man rplctl-design).

report_file   what was found: for people, and for `rplctl repair`
"""
