"""A module that no text of a store may import; see tests/spark/test_stored_views.py."""
