"""Tests of the launcher: real processes, real servers, no Django."""
