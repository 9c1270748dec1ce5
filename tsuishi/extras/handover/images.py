"""The source of images that are not built here: the place of a site."""

from tsuishi.extras.handover.incoming import ON_THE_WAY
from tsuishi.extras.handover.sharing import SharedPlace

place = SharedPlace
# Folders of the cache in which images are on their way.
CACHED = ON_THE_WAY
