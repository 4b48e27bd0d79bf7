"""Elastic measures: what users pass, checked, and what the ops take."""
