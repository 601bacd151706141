"""One folder per outside thing; foreign types and exceptions stop here."""
