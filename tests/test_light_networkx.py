"""NetworkX bit by bit: graphs without algorithms, and the whole package as soon as one is used."""

import pytest
from fresh_process import printed_by

BEGIN = """
import sys
from ringleaf.core import light_networkx
light_networkx.install()
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


def test_what_it_has_not_got_is_no_attribute() -> None:
    assert outcome("print(light, hasattr(nx, 'no_such_thing'), nx.Graph)").startswith("True False ")


def test_a_release_that_begins_in_another_way_is_imported_whole() -> None:
    begin = BEGIN.replace(
        "light_networkx.install()",
        "light_networkx._BEGINNING = 'from networkx import other'\nlight_networkx.install()",
    )

    assert outcome(
        "print(first, light, graph.edges, nx.shortest_path(graph, 1, 2))", begin=begin
    ) == ("[] False [(1, 2)] [1, 2]")


def test_one_that_is_imported_already_stays_as_it_is() -> None:
    begin = f"import networkx as whole\n{BEGIN}"

    assert outcome("print(light, nx is whole)", begin=begin) == "False True"
