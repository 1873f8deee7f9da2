"""The studio: a page for people, served at `/`. It asks the API for everything, as any other client does.

page/       what a browser gets: HTML, CSS and ES modules, as they are
serving     how it gets them
"""
