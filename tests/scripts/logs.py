"""Numbers through the module logging, on stderr."""

import logging
import time

logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("train")
for step in range(5):
    time.sleep(0.02)
    log.info("step %d: %.1f images/s, loss=%.3f", step, 1000.0 + step, 1.0 / (step + 1))
