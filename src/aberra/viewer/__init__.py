"""A local page that shows scans, tables of scores, models and reports to the person beside it.

`catalogue` lists what may be shown, `guard` decides who may ask, `app` answers, `serve` listens.
"""
