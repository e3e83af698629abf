"""The database: connections, the embedded server, SQL files and migrations."""
