# Any Python must be able to read this file, if only to be told that it is too old.
import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        "Dualscope needs Python 3.11, 3.12 or 3.13, and this is Python "
        + ".".join(map(str, sys.version_info[:2]))
        + ': install one of those and call it by its name, for example "python3.12 -m installer" '
        + '("py -3.12 -m installer" on Windows).'
    )

from installer.cli import main

sys.exit(main(sys.argv[1:]))
