"""What several machines share through one server of Valkey or Redis: its address, the connection to it, and what is
kept there."""
