"""The wire of the bridge, version 1: messages and sans-I/O sessions. Imported by the server and by the job."""
