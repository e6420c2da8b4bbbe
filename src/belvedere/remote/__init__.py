"""Access to a store that another process has open: frames and the client. The server is a door."""
