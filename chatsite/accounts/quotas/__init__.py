"""What a user, a key and a business line may use within a window, and that nobody slips past it.

`rules` says which quotas are in force for a caller, `admission` counts and refuses, `settlement` turns what was held
into what was used, `standing` tells how far somebody is. All of it synchronous; the flow calls it.
"""
