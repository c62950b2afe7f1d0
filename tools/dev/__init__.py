"""Developers' command `./eddy-dev`: what it does to the code, one subject in each module."""
