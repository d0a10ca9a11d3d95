"""A terminal program with a composer as Claude Code draws it: takes pastes, and notes in a file what was sent by Enter.

    claude LOG [swallow] [draft TEXT]

`swallow`: an Enter does nothing. `draft TEXT`: that text stands in the composer from the start.
"""

import os
import sys
import termios
import tty
from pathlib import Path

PASTE, PASTED = b"\x1b[200~", b"\x1b[201~"


def draw(text: str) -> None:
    rule = "─" * 60
    shown = f"[Pasted text #1 +{text.count(chr(10))} lines]" if text.count("\n") > 2 else text.replace("\n", "\r\n  ")
    sys.stdout.write(f"\x1b[2J\x1b[H{rule}\r\n❯\xa0{shown}\r\n{rule}\r\n  ? for shortcuts")
    sys.stdout.flush()


def main() -> None:
    log, *options = sys.argv[1:]
    text = options[options.index("draft") + 1] if "draft" in options else ""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    sys.stdout.write("\x1b[?2004h")
    try:
        draw(text)
        is_pasting, waiting = False, b""
        while data := os.read(0, 4096):
            waiting += data
            while waiting:
                if waiting.startswith(PASTE):
                    is_pasting, waiting = True, waiting[len(PASTE) :]
                elif waiting.startswith(PASTED):
                    is_pasting, waiting = False, waiting[len(PASTED) :]
                elif waiting[:1] == b"\x1b" and len(waiting) < len(PASTE):
                    break
                else:
                    end = max((waiting.find(b"\x1b", 1) if b"\x1b" in waiting[1:] else len(waiting)), 1)
                    piece, waiting = waiting[:end].decode(errors="ignore"), waiting[end:]
                    for sign in piece:
                        if sign == "\r" and not is_pasting:
                            with Path(log).open("a") as file:
                                file.write(f"{text!r}\n")
                            text = text if "swallow" in options else ""
                        elif sign == "\x15":
                            text = ""
                        elif sign != "\x1b":
                            text += "\n" if sign == "\r" else sign
            draw(text)
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


main()
