"""Programs that take part in a study over HTTP and Socket.IO like people, for rehearsals before people come."""
