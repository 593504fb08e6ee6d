"""Large packages bit by bit, and each whole as soon as more of it is used.

Of NetworkX that is graphs without algorithms; of finsy, messages of P4Runtime without gRPC.
"""

from pathlib import Path

import pytest
from fresh_process import printed_by

BEGIN = """
import sys
from ringleaf.core import light_packages
light_packages.install()
import networkx as nx
first = [name for name in sys.modules if name.startswith("networkx.")]
class Drawn(nx.Graph): pass
graph = Drawn()
graph.add_edge(1, 2)
light = "networkx.algorithms" not in sys.modules
"""


def outcome(*lines: str, begin: str = BEGIN) -> str:
    """Return what a new process prints that has made a graph."""
    return printed_by(begin, *lines)


def test_a_graph_needs_no_algorithms() -> None:
    told = outcome(
        "import pickle",
        "copy = pickle.loads(pickle.dumps(graph.copy()))",
        "still = 'networkx.algorithms' not in sys.modules",
        "print(first, light, still, copy.edges, nx.DiGraph().nodes)",
    )

    assert told == "[] True True [(1, 2)] []"


@pytest.mark.parametrize(
    "use",
    [
        "path = nx.shortest_path(graph, 1, 2)",
        "from networkx import shortest_path; path = shortest_path(graph, 1, 2)",
        "import networkx.algorithms as known; path = known.shortest_path(graph, 1, 2)",
        "from networkx.algorithms import shortest_path; path = shortest_path(graph, 1, 2)",
    ],
)
def test_the_first_use_of_an_algorithm_imports_all(use: str) -> None:
    told = outcome(
        use,
        "print(light, path, isinstance(graph, nx.Graph), nx.Graph is Drawn.__base__,",
        "      nx.__version__ == sys.modules['networkx'].__version__, nx.__path__ != [])",
    )

    assert told == "True [1, 2] True True True True"


def test_backends_are_looked_for_only_if_a_package_has_some(tmp_path: Path) -> None:
    """NetworkX itself has one, for its tests."""
    assert outcome("print(light, 'email' in sys.modules)") == "True False"

    package = tmp_path / "fast-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: fast\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[networkx.backends]\nfast = fast:Fast\n")
    begin = f"import sys; sys.path.append({str(tmp_path)!r})\n{BEGIN}"
    assert outcome("print(list(nx.utils.backends.backends))", begin=begin) == "['fast']"


def test_packages_entry_points_are_those_that_python_finds() -> None:
    told = outcome(
        "import importlib.metadata; light_metadata = importlib.metadata",
        "from importlib.metadata import entry_points",
        "none = entry_points(group='no.such')",
        "kept = light_metadata.entry_points is entry_points",
        "scripts = {each.name for each in entry_points(group='console_scripts')}",
        "again = {each.name for each in light_metadata.entry_points(group='console_scripts')}",
        "print(list(none), list(none.select(name='x')), none.names == set(), kept,",
        "      'ringleaf' in scripts, scripts == again, light_metadata.version('networkx') > '3',",
        "      'ringleaf' in entry_points().select(group='console_scripts').names)",
    )
    assert told == "[] [] True True True True True True"


def test_what_it_has_not_got_is_no_attribute() -> None:
    assert outcome("print(light, hasattr(nx, 'no_such_thing'), nx.Graph)").startswith("True False ")


def test_a_release_that_begins_in_another_way_is_imported_whole() -> None:
    begin = BEGIN.replace(
        "light_packages.install()",
        "light_packages._BEGINNING = 'from networkx import other'\nlight_packages.install()",
    )

    assert outcome(
        "print(first, light, graph.edges, nx.shortest_path(graph, 1, 2))", begin=begin
    ) == ("[] False [(1, 2)] [1, 2]")


def test_one_that_is_imported_already_stays_as_it_is() -> None:
    begin = f"import networkx as whole\n{BEGIN}"

    assert outcome("print(light, nx is whole)", begin=begin) == "False True"


MESSAGES = """
import sys
from ringleaf.core import light_packages
light_packages.install()
"""


def test_messages_need_no_grpc_and_stay_those_of_finsy() -> None:
    told = outcome(
        "from finsy.proto import p4d, p4i, p4r, p4t",
        "light = 'grpc' not in sys.modules and 'finsy' not in sys.modules",
        "import finsy, finsy.proto",
        "print(light, finsy.p4schema.p4i is p4i, finsy.proto.p4r is p4r, 'grpc' in sys.modules)",
        begin=MESSAGES,
    )

    assert told == "True True True True"


@pytest.mark.parametrize(
    "first",
    [
        "from finsy.proto import U128",
        "from finsy.proto import p4r_grpc",
        "from finsy.p4entity import P4TableEntry",
        "import finsy",
    ],
)
def test_any_other_message_imports_all_of_finsy(first: str) -> None:
    told = outcome(
        first,
        "import finsy",
        "from finsy.p4entity import P4TableEntry",
        "from finsy.proto import p4r",
        "print(finsy.proto.U128.encode(5).low, P4TableEntry is finsy.P4TableEntry,",
        "      finsy.p4entity.p4r is p4r)",
        begin=MESSAGES,
    )

    assert told == "5 True True"


def test_a_release_with_messages_elsewhere_is_imported_whole() -> None:
    told = outcome(
        "light_packages._KINDS['p4i'] = 'no.such'",
        "from finsy.proto import p4i",
        "print(p4i.P4Info.__name__, 'grpc' in sys.modules)",
        begin=MESSAGES,
    )

    assert told == "P4Info True"
