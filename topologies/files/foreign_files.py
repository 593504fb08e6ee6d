"""Files that people take for topologies, and that are something else: by their text."""

from __future__ import annotations

import re

_BY_HAND = "write each link as a line, h1 s1 rate=10G, into a .edges file"
_START = r"\A(?:\s|//[^\n]*\n|#[^\n]*\n)*+"

_MANY = (
    (r"<algo\b", "an algorithm in MSCCL's XML, which --algo takes"),
    (
        r"<graphs\b[^>]*>\s*<graph\b",
        "the rings and trees that NCCL chose; NCCL_TOPO_DUMP_FILE writes the topology",
    ),
    (r"\A\s*GRAPH \(#nodes\b", f"a graph of GT-ITM; {_BY_HAND}"),
    (r"sndlib\.zib\.de|\A\s*\?SNDlib", "a network of SNDlib; convert it to GraphML"),
    (
        r"(?i)\A(?:\s|//[^\n]*|#[^\n]*|/\*[\s\S]*?\*/)*+(?:strict\s+)?(?:di)?graph\b[^\[{]*\{",
        "a graph of Graphviz; gv2gml writes it as GML",
    ),
    (r"(?i)\A(?:\s|%[^\n]*\n)*+\*(?:vertices|network)\b", "a graph of Pajek; write it as GraphML"),
    (r"\A\s*NODES \d+", "a network of REPETITA; convert it to an edge list"),
    (r"\A\s*Topology:? \( ?\d+ Nodes", "a topology of BRITE; convert it to an edge list"),
    (
        r"\A\s*Nodes[ \t]+\d+\s+(?:Connections|Triggers)[ \t]+\d+",
        "htsim's traffic, which is no topology",
    ),
    (r"\A\s*\d+\s*\n\s*\d+ \d+ \d+ \d+ [\d.]+", "flows of HPCC's ns-3, which are no topology"),
    (r"\A\s*(?:HYBRID|DATA|MODEL|MICRO|ALL_)\w*\b.*\n", "a workload of ASTRA-sim or SimAI"),
    (r'"(?:topology-name|topologies-per-dim)"', "ASTRA-sim's first network file; write a .yml"),
    (r'"logical-dims"', "the dimensions of ASTRA-sim's ns-3; its topology is the text file"),
    (
        r'"(?:scheduling-policy|all-reduce-implementation)"',
        "ASTRA-sim's system file, which is no topology; give the network's .yml",
    ),
    (r"<platform\b[^>]*\bversion=", f"a platform of SimGrid; {_BY_HAND}"),
    (r'"schema"\s*:\s*"[^"]*chakra', "a trace of PyTorch, which is a workload"),
    (r'"traceEvents"', "a trace of events, which is no topology"),
    (r'"header_types"\s*:', "a P4 program for BMv2, which --program takes"),
    (r'"adjacency"\s*:\s*\[', "NetworkX's adjacency JSON; write nx.node_link_data"),
    (r'"elements"\s*:\s*[\[{]', "a graph of Cytoscape; write it as GraphML"),
    (
        r'"application"\s*:\s*\{[^{}]*"dpctl"|"opts"\s*:\s*\{[^{}]*"nodeNum"\s*:',
        f"a network of MiniEdit; {_BY_HAND}",
    ),
    (
        r"(?i)\A\W*(?:source|src|from)[,;\t]\W*(?:target|dst|dest|destination|to)\b",
        f"a table of links; {_BY_HAND}",
    ),
    (
        rf"{_START}(?:(?i:SwitchName|BlockName|BlockSizes)=|(?:---\s+)?- topology:[ \t]*\w)",
        f"SLURM's topology; {_BY_HAND}",
    ),
    (r'"threadblocks"\s*:\s*\[', "an execution plan of MSCCL++, which is no topology"),
    (r"(?m)^(?:vendid|sysimgguid|caguid|switchguid)=0x", f"ibnetdiscover's list; {_BY_HAND}"),
    (r"\A\s*(?:router|node) \d+ (?:router|node) \d+", f"BookSim's anynet; {_BY_HAND}"),
    (
        rf"{_START}(?:package|import) [\w.]+;|(?m:^[ \t]*submodules[ \t]*:)[^;]*;",
        f"a network of OMNeT++; {_BY_HAND}",
    ),
    (r"<!DOCTYPE topology SYSTEM .hwloc", "a machine of hwloc; NCCL_TOPO_DUMP_FILE writes one"),
    (r"<platform_description\b", "a platform of SimGrid before 3.0; simgrid_update_xml renews it"),
    (r'\A\s*\{[^{}\[]*"children"\s*:\s*\[', "NetworkX's tree JSON; write nx.node_link_data"),
    (
        r"(?m)^topology:(?:\s|#[^\n]*\n)*+\{?\s*(?:nodes|kinds|links|defaults|groups):",
        f"a lab of Containerlab; {_BY_HAND}",
    ),
    (r"(?m)^[ \t]*(?:- )?node_definition: ", f"a lab of Cisco's CML; {_BY_HAND}"),
    (
        r'\A\s*\{(?=[\s\S]*"project_id"\s*:)[\s\S]*"topology"\s*:\s*\{',
        f"a project of GNS3; {_BY_HAND}",
    ),
    (r"<lab\b[^>]*>\s*<topology>", f"a lab of EVE-NG; {_BY_HAND}"),
    (r"(?m)\A(?:\s|#[^\n]*\n|LAB_\w+=[^\n]*\n)*+[\w-]+\[\w+\]=", f"a lab of Kathara; {_BY_HAND}"),
    (r"<(?:mxfile|mxGraphModel)\b", f"a drawing of draw.io; {_BY_HAND}"),
    (
        r"(?m)^[^\w\n]*(?:\[4m\s*)?GPU0\s[^\n]*\n[^\w\n]*GPU0\s+X\s",
        "the table of nvidia-smi topo -m; NCCL_TOPO_DUMP_FILE writes the topology",
    ),
    (
        r"(?:Weight|Hops|Link Type) between two GPUs|(?m:^LINK TYPE TABLE:)",
        "tables of rocm-smi or amd-smi; NCCL_TOPO_DUMP_FILE writes the topology",
    ),
    (
        r"(?m)^[ \t]*(?:from|import) p4utils\b",
        "a script of P4-Utils; take the topology.json that it saves",
    ),
    (r"(?m)^[ \t]*(?:from|import) mininet\b", f"a script of Mininet; {_BY_HAND}"),
    (r"(?m)^[ \t]*(?:from|import) networkx\b", "a script; have it call nx.write_graphml"),
    (
        r"\A\s*(?:mininet>[^\n]*\n\s*)?(?:[\w.]{1,40} )?"
        r"[\w.]{1,40}-eth\d{1,5}(?:<->|:)[\w.]{1,40}-eth",
        f"links as Mininet prints them; {_BY_HAND}",
    ),
    (
        r'\A\s*\{(?=[\s\S]*"devices"\s*:\s*\[)[\s\S]*"(?:links|hosts)"\s*:\s*\[',
        f"a network of ONOS; {_BY_HAND}",
    ),
)


def looks_like(text: str) -> str:
    """Return what a file is that is no topology we read, for a message; "" if it is unknown."""
    return next((what for pattern, what in _MANY if re.search(pattern, text)), "")
