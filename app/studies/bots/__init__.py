"""Programs that take part in a study over HTTP and Socket.IO as people do, for rehearsals before people come."""
