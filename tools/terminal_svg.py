#!/usr/bin/env python3
"""Draws text from standard input as a picture of a terminal, SVG to standard output.

    ./run demo 2>/dev/null | tools/terminal_svg.py '$ ./run demo' >docs/demo.svg
"""
import html
import sys

LINE, CHARACTER, MARGIN, MAX_COLUMNS = 18, 7.8, 16, 118


def main():
    title = sys.argv[1] if len(sys.argv) > 1 else "$"
    lines = [title] + [line.rstrip("\n").expandtabs()[:MAX_COLUMNS] for line in sys.stdin]
    width = MARGIN * 2 + CHARACTER * max(len(line) for line in lines)
    height = MARGIN * 2 + LINE * len(lines)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" role="img">')
    print(f"<title>{html.escape(title)}</title>")
    print('<rect width="100%" height="100%" rx="8" fill="#1e1e2e"/>')
    print('<g font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="13" fill="#cdd6f4">')
    for i, line in enumerate(lines):
        color = ' fill="#a6e3a1"' if i == 0 else ""
        y = MARGIN + LINE * (i + 0.75)
        print(f'<text x="{MARGIN}" y="{y:.0f}" xml:space="preserve"{color}>{html.escape(line)}</text>')
    print("</g>\n</svg>")


main()
