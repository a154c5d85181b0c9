// Source of the targets that compile a precompiled header.
