"""How Filebeat gets onto the training nodes: systemd, a container, a DaemonSet, an Ansible role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from jinja2 import Environment

from ascend_elk.errors import UserError
from ascend_elk.formats.program import Program
from ascend_elk.layout.roots import Root
from ascend_elk.render.filebeat import directories
from ascend_elk.render.kubernetes import manifests
from ascend_elk.render.options import RenderOptions

TARGETS = ("systemd", "compose", "kubernetes", "ansible")
# The newest of each line that is known to exist
FILEBEAT_VERSIONS: Mapping[str, str] = {"7.17": "7.17.28", "8": "8.19.4", "9": "9.4.3"}
# Where the kubelet keeps an emptyDir volume that a pod names ascend-log: what a job writes there is read
# without a mount of the host in the job. The secrets of all pods lie beside it, so it has to be asked for.
EMPTY_DIR = "/var/lib/kubelet/pods/*/volumes/kubernetes.io~empty-dir/ascend-log"
_WILDCARD = re.compile(r"[*?\[]")
_SELECTOR = re.compile(r"([A-Za-z0-9._/-]{1,317})=([A-Za-z0-9._-]{0,63})")


@dataclass(frozen=True)
class TargetOptions:
    """Where Filebeat runs.

    Attributes:
        targets: names out of ``TARGETS``.
        node_selector: labels of the Ascend nodes in Kubernetes, as ``key=value``.
        kubernetes_namespace: where the DaemonSet goes.
        pod_volumes: also read the volumes ``ascend-log`` of pods.

    Raises:
        UserError: a choice makes no sense.
    """

    targets: tuple[str, ...] = ()
    node_selector: tuple[str, ...] = ("workerselector=dls-worker-node",)
    kubernetes_namespace: str = "ascend-elk"
    pod_volumes: bool = False

    def __post_init__(self) -> None:
        """Check the choices."""
        if self.pod_volumes and "kubernetes" not in self.targets:
            raise UserError("--pod-volumes is for --target kubernetes: pass both, or none")
        for target in self.targets:
            if target not in TARGETS:
                raise UserError(f"{target!r} is no target; write one of: {', '.join(TARGETS)}")
        for text in self.node_selector:
            if not _SELECTOR.fullmatch(text):
                raise UserError(f"{text!r} is no label; write for example workerselector=dls-worker-node")
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", self.kubernetes_namespace):
            raise UserError(f"{self.kubernetes_namespace!r} is no name of a namespace in Kubernetes")

    @property
    def labels(self) -> dict[str, str]:
        """The node selector as a mapping."""
        pairs = (text.partition("=") for text in self.node_selector)
        return {key: value for key, _, value in pairs}


def with_container_roots(options: RenderOptions, targets: TargetOptions) -> RenderOptions:
    """Add the log roots of pods, where they are to be read."""
    if not targets.pod_volumes or EMPTY_DIR in options.roots:
        return options
    return replace(options, roots=(*options.roots, EMPTY_DIR))


def render_targets(
    program: Program,
    roots: dict[str, Root],
    files: Mapping[str, str],
    options: RenderOptions,
    targets: TargetOptions,
    templates: Environment,
    role: Path,
) -> dict[str, str]:
    """Return the files of the targets by path.

    Args:
        program: what is read.
        roots: where it lies.
        files: the rendered configuration, of which Kubernetes gets a copy.
        options: choices of the rendering.
        targets: where Filebeat runs.
        templates: of Filebeat.
        role: the Ansible role, as files.
    """
    mounted = mounted_directories(program, roots, options)
    version = FILEBEAT_VERSIONS[options.stack]
    found: dict[str, str] = {}
    if "systemd" in targets.targets or "ansible" in targets.targets:
        text = templates.get_template("systemd.conf.j2").render(options=options)
        found["systemd/filebeat.service.d/ascend-elk.conf"] = text
    if "compose" in targets.targets:
        text = templates.get_template("compose.yml.j2").render(
            options=options, mounted=mounted, version=version
        )
        found["compose/docker-compose.yml"] = text
    if "kubernetes" in targets.targets:
        image = f"docker.elastic.co/beats/filebeat:{version}"
        found |= manifests(files, mounted, options, targets.kubernetes_namespace, targets.labels, image)
    if "ansible" in targets.targets:
        for path in sorted(role.rglob("*")):
            if path.is_file():
                found[f"ansible/{path.relative_to(role).as_posix()}"] = path.read_text("utf-8")
    return found


def mounted_directories(program: Program, roots: dict[str, Root], options: RenderOptions) -> tuple[str, ...]:
    """Return what a container needs of the host: of each place the directories above its first wildcard."""
    used = {path.root for source in program.sources.values() for path in program.paths(source)}
    places = [place for name in sorted(used) for place in directories(roots[name], options)]
    places += [str(PurePosixPath(path).parent) for path in options.consoles]
    return _outermost(_above_wildcard(place) for place in places)


def _above_wildcard(pattern: str) -> PurePosixPath:
    parts: list[str] = []
    for part in PurePosixPath(pattern).parts:
        if _WILDCARD.search(part):
            break
        parts.append(part)
    path = PurePosixPath(*parts)
    if path == PurePosixPath("/"):
        raise UserError(f"{pattern!r} begins with a wildcard; begin it with a directory that can be mounted")
    return path


def _outermost(paths: Iterable[PurePosixPath]) -> tuple[str, ...]:
    found: list[PurePosixPath] = []
    for path in sorted(set(paths)):
        if not any(above in path.parents for above in found):
            found.append(path)
    return tuple(map(str, found))
