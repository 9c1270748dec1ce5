"""A JSON object a line."""

import json

for step in range(3):
    print(json.dumps({"step": step, "tokens_per_s": 2000 + step, "note": 'a "quoted" text'}))
