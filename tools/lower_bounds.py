"""Print the oldest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib
from pathlib import Path

FIRST = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\d.]+)")


def lower_bounds(pyproject: str) -> list[str]:
    """Return ``name==version`` for every requirement with a lower bound, of all extras too."""
    project = tomllib.loads(pyproject)["project"]
    required = [project["dependencies"], *project["optional-dependencies"].values()]
    found = (FIRST.match(requirement) for extra in required for requirement in extra)
    return sorted({f"{match['name']}=={match['version']}" for match in found if match})


if __name__ == "__main__":
    print("\n".join(lower_bounds((Path(__file__).parents[1] / "pyproject.toml").read_text())))
