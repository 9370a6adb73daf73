"""Writers of published formats: what an importer has read, and what was played here, in the form of its authors."""
