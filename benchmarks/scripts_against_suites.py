"""Scripts that print their own times, against our suites: `python -m benchmarks.scripts_against_suites`, .venv active.

For each published source, benchmarks/articles/ has a script as its author may have written it. It is measured as it
is, by what it prints, and in the same session, in turns, as the case of our suite that does the same: some trials
each, in a virtual environment. Printed is how long a script says something takes, as a multiple of what our workload
says, with an interval, and the family's word on it; all words together are wrong in 5 % of such tables. Some ten
minutes. The source batch-throughput says too little for a `literal` case: its script stands beside `steady`, twice: as
it is, where glibc gives the gradients' memory back to the kernel in every step and the step has page faults, and with
an environment variable by which glibc keeps the memory, as it does in our workload, where larger arrays were freed.

Exit code 1 where any of them differ.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks import known_truths as truths
from tests.bench import link_checkout
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.base.screen import Screen
from tsuishi.base.settings import read_settings
from tsuishi.estimates.contrasts import ratio
from tsuishi.estimates.intervals import CONFIDENCE, Term
from tsuishi.estimates.ratios import as_ratio
from tsuishi.plan.choice import Choice, choose
from tsuishi.plan.planning import Plan, outline_run
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.run.measuring import as_built
from tsuishi.run.new_run import measured
from tsuishi.specs.vocabulary import Vocabulary
from tsuishi.verdicts import family
from tsuishi.verdicts.evidence import Evidence

ARTICLES = Path(__file__).parent / "articles"
TRIALS = 6  # without --trials


class Article(NamedTuple):
    """A script with its arguments, and what our suite measures the same by.

    lines: by the quantity of ours, the line of the script that prints it, its number as the group `value`, in seconds
    but for `scale`. workload, settings, axes: of our case. variables: environment variables of the script, as TOML.
    """

    name: str
    environment: str
    arguments: tuple[int, ...]
    lines: dict[str, str]
    workload: str
    settings: str
    axes: str
    scale: float = 1.0
    variables: str = ""


TRAINING = 'mode = "training", layout = "native", strategy = "none", devices = 1, nodes = 1, precision = "fp32"'
EPOCHS = f'protocol = "literal", {TRAINING}, model = "cnn10", batch_size = 32, execution = "native", loader = "tensors"'
ARTICLE_EPOCHS = "epochs = 4, train_images = 128, test_images = 32"
ARTICLES_AND_CASES: tuple[Article, ...] = (
    Article(
        "conv2d_gce",
        "tf1.13-cpu",
        (3,),
        {"first_run_s": r"towers: (?P<value>[\d.]+) ms", "later_run_s": r"again: (?P<value>[\d.]+) ms"},
        "conv2d",
        "later_runs = 5",
        'protocol = "literal", implementation = "framework", strategy = "towers", devices = 3, images = 840, '
        'height = 100, width = 100, channels = 1, filter_size = 3, data = "ones", feed = "constant", '
        'graph_optimizers = "default"',
        0.001,
    ),
    Article(
        "torch_2080ti",
        "torch1.1-cu90",
        (32, 4, 128),
        {
            "first_epoch_s": r"Epoch 1/.*time: (?P<value>[\d.]+) s",
            "median_epoch_s": r"Epoch [2-9]/.*time: (?P<value>[\d.]+) s",
        },
        "training",
        ARTICLE_EPOCHS,
        EPOCHS,
    ),
    Article(
        "keras_channels_first",
        "tf1.13-cpu",
        (32, 4, 128),
        {
            "first_epoch_s": r"epoch 1: (?P<value>[\d.]+) sec",
            "median_epoch_s": r"epoch [2-9]: (?P<value>[\d.]+) sec",
        },
        "training",
        ARTICLE_EPOCHS,
        EPOCHS,
    ),
    Article(
        "towers_titanx",
        "tf1.13-cpu",
        (8, 50),
        {"step_s": r"step [1-9]\d*, .* (?P<value>[\d.]+) sec/batch"},
        "input_pipeline",
        "learning_rate = 0.001, later_runs = 50, train_images = 4096",
        'protocol = "literal", mode = "training", model = "vgg_small", strategy = "none", devices = 1, '
        'batch_size = 8, precision = "fp32", pipeline = "shared_host"',
    ),
    Article(
        "batch_throughput",
        "torch2-cpu",
        (64,),
        {"step_s": r"batch \d+: (?P<value>[\d.]+) s"},
        "training",
        "warm_up_steps = 20, warm_up_s = 0.5, block_s = 0.3, min_blocks = 8, measure_s = 3.0, max_s = 6.0",
        f'protocol = "steady", {TRAINING}, model = "mlp", batch_size = 64, execution = "native"',
    ),
)
ARTICLES_AND_CASES += (ARTICLES_AND_CASES[-1]._replace(variables='MALLOC_TOP_PAD_ = "67108864"'),)


class Row(NamedTuple):
    """The same quantity of the same article, as the script prints it and as our workload measures it."""

    article: Article
    quantity: str
    script: Term
    ours: Term


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of articles, separated by commas")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of each script and of each case of ours")
    given = parser.parse_args()
    chosen = [each for each in ARTICLES_AND_CASES if each.name in (given.only or each.name).split(",")]
    if not chosen:
        known = dict.fromkeys(article.name for article in ARTICLES_AND_CASES)
        parser.error(f"--only: no article is named {given.only}; known: {', '.join(known)}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, article in enumerate(chosen):
            rows += rows_of(article, Path(folder) / str(number), given.trials)
    sys.exit(report(Screen(), rows))


def rows_of(article: Article, root: Path, trials: int) -> list[Row]:
    """Measure an article and our case in turns, under the folder `root`."""
    checkout = make_checkout(article, root, trials)
    run, words = measure(checkout, article.environment)
    terms = Evidence([run], (), words).terms
    found = {name: term for (_, _, name), term in terms.items()}
    return [Row(article, name, found[f"printed_{name}"], found[name]) for name in article.lines]


def make_checkout(article: Article, root: Path, trials: int) -> Checkout:
    """A checkout whose two suites are the script and our case."""
    checkout = link_checkout(root)
    script = f"{article.name}.py"
    shutil.copy(ARTICLES / script, checkout.suites)
    patterns, quantities = "", ""
    for name, line in article.lines.items():
        line = line.replace("<value>", f"<printed_{name}>")
        patterns += f"[patterns.{name}]\nline = '{line}'\nscale = {{ printed_{name} = {article.scale} }}\n"
        take = "median" if name in ("later_run_s", "median_epoch_s") else "mean"
        quantities += f'[new_quantities.printed_{name}]\nlabel = "{name}, as printed"\nunit = "s"\n'
        quantities += f'from = "metric:printed_{name}"\ntake = "{take}"\n'
    words = ["python", "{script}", *map(str, article.arguments)]
    profile = f"[profiles.quick]\nrepetitions = {{ cpu = {trials} }}\ntimeout_s = 600.0\n"
    (checkout.suites / "printed.toml").write_text(
        f'title = "the script"\nworkload = "script"\n[experiment]\nscript = "{script}"\n'
        f'sha256 = "{sha256_of(ARTICLES / script)}"\ncommand = {json.dumps(words)}\n'
        f"variables = {{ {article.variables} }}\n{patterns}{quantities}{profile}"
        '[[groups]]\naxes = { protocol = "literal" }\n',
        encoding="utf-8",
    )
    (checkout.suites / "ours.toml").write_text(
        f'title = "our workload"\nworkload = "{article.workload}"\n{profile}settings = {{ {article.settings} }}\n'
        f"[[groups]]\naxes = {{ {article.axes} }}\n",
        encoding="utf-8",
    )
    return checkout


def measure(checkout: Checkout, environment: str) -> tuple[RunDirectory, Vocabulary]:
    """A run of both suites, and the words that describe it."""
    own = {"engine": "venv", "results": checkout.root / "results"}
    settings = read_settings({}, os.environ, {}).model_copy(update=own)
    session = Session(settings, Choice((environment,)), Screen(), checkout)
    chosen = choose(session.builder, checkout, session.choice, session.nvml).environments
    ready = session.build(chosen)
    outlined = outline_run(session, [as_built(each) for each in ready.values()], ready)
    return measured(session, "articles", Plan(chosen, 0.0), ready, outlined), session.words


def report(screen: Screen, rows: list[Row]) -> bool:
    """Print the table; True where a row differs."""
    hypotheses = [truths.difference([row.script], [row.ours], row.script.trials) for row in rows]
    decisions = family.decide(hypotheses, 1 - CONFIDENCE)
    words, table = [], []
    for row, decision in zip(rows, decisions, strict=True):
        found = as_ratio(ratio(row.script, row.ours), decision.level)
        words.append("alike" if decision.holds else "differ" if decision.against else "open")
        shown = (f"{end:.3f}" if end else "-" for end in found)
        name = f"{row.article.name} {row.article.variables}".strip()
        table.append((name, row.article.environment, row.quantity, row.script.trials, *shown, words[-1]))
    head = ("script", "environment", "quantity", "trials", "script / ours", "low", "high", "")
    screen.table("What scripts print, against our workloads", head, table)
    return "differ" in words


if __name__ == "__main__":
    main()
