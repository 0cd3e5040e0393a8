"""The parts of ci/hostile.py."""
