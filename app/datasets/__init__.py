"""What goes in and out of Parlor as files in published formats. docs/formats.md says what each of them holds."""
