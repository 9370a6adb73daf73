"""Writers of published formats, for imported data and for matches played here."""
