"""JSON Schemas of other people, held against values."""
