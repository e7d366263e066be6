"""`make offline`: the main line of the book as one EPUB and one PDF, made of the built site.

Nothing is executed again. Chromium opens each page of the site, and `collect.js` turns it into a chapter without
scripts. The EPUB is these chapters in a zip file. The PDF is Chromium's print of all of them: the layout engine, the
MathJax and the style of tables and code that the site has, and no second converter in which something could get lost.
"""
