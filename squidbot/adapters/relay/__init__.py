"""Carries happenings between gateways."""
