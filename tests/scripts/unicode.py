"""Text in Japanese with colours, and bytes that are no text."""

import sys

print("\x1b[32m処理時間：1.25 秒\x1b[0m ✔")
sys.stdout.flush()
sys.stdout.buffer.write(b'\xff\xfe broken \x1e{"event":"finished","seq":0,"t":0,"rank":0}\n')
print("処理時間：１.７５ 秒 — 全角")
