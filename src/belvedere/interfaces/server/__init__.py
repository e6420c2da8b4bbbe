"""The server: PostgreSQL's wire protocol, version 3, on threads of one process.

In reading order; an entry uses only those before it:

    messages         frames of the protocol: reading those of a client, building those for it
    value_encoders   values of result rows as text
    table_encoder    Arrow columns as DataRow messages
    row_encoder      result rows as DataRow messages
    error_fields     errors and notices as messages
    startup          the first messages of a connection: encryption, version, parameters, cancel
    authentication   login by SCRAM-SHA-256
    login            who may log in, and as whom
    wakeup           waiting for a client that also waits for notifications
    copy_streams     COPY FROM STDIN and TO STDOUT as messages
    prepared_rounds  Bind to Sync of a prepared statement in one packet, read at once
    portals          prepared statements and portals of the extended protocol
    read_poller      one thread that answers the point reads of many clients
    client           one client: reads its messages and answers each
    hangup_watch     cancels the statements of clients that are gone
    listener         accepts clients, one thread each, until it is closed
"""
