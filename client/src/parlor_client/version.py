"""The client's version, the same as that of the Parlor it is released with."""

__version__ = "0.2.0"
OLDEST_SERVER = "0.2.0"  # the oldest Parlor with everything that the client asks for
