// Source of the targets that own a precompiled header.
