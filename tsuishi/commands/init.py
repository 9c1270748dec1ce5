"""`invoke init`: a folder with tasks, images, suites, sources and templates, to change them."""

from tsuishi.base import home
from tsuishi.base.tree import write_tree
from tsuishi.base.typed import program
from tsuishi.commands.chain import Chain


def init(chain: Chain) -> None:
    """Write the tree into the folder, or bring it up to date."""
    folder, screen = home.expanded(chain.options.text("folder")), chain.session.screen
    folder.mkdir(parents=True, exist_ok=True)
    for name in write_tree(folder, chain.session.checkout):
        screen.say(f"{folder / name}: changed by hand, and left as it is")
    screen.say(
        f"{folder}: tasks.py, images/, suites/, reports/published/, templates/: change them; `{program()}` runs there"
    )
