"""Functions of dates, times and intervals.

In reading order; an entry uses only those before it:

    arithmetic       arithmetic of dates, times, timestamps and intervals
    construct        dates and times from numbers, zones and the clock: make_*, to_timestamp, now
    extract          parts of dates and times: extract, date_part, date_trunc, age, isfinite
    format_datetime  to_char, to_date and to_timestamp by PostgreSQL's template patterns
    session_zone     functions that depend on the session's time zone, when it is not UTC
"""
