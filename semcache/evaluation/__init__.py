"""How good the semantic cache is: labelled questions, what would be served, and how often that is wrong.

Read `runs` first. Nothing here runs while the site serves.
"""
