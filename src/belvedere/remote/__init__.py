"""How another process reaches a store that is open: frames and the client. The server is a door."""
