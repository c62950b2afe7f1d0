"""JDKs of this machine, for what builds or runs the Java module."""

import glob
import os
import re

OLDEST = 17


def feature_of(home):
    """The number of a JDK's version; 0 if it is none."""
    try:
        with open(os.path.join(home, "release"), encoding="utf-8") as release:
            found = re.search(r'JAVA_VERSION="(\d+)', release.read())
    except OSError:
        return 0
    return int(found.group(1)) if found and os.access(os.path.join(home, "bin", "javac"), os.X_OK) else 0


def jdks():
    """Homes by version, from 17 on."""
    candidates = glob.glob("/usr/lib/jvm/*") + [os.environ.get("JAVA_HOME", "")]
    homes = {os.path.realpath(home) for home in candidates if home}
    return {feature: home for home in sorted(homes) if (feature := feature_of(home)) >= OLDEST}
