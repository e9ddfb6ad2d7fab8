"""Filebeat as a DaemonSet on the nodes with Ascend devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import yaml

from ascend_elk.errors import UserError
from ascend_elk.render.options import RenderOptions

NAME = "ascend-elk-filebeat"
CERTIFICATES = "ascend-elk-filebeat-certs"
CREDENTIALS = "ascend-elk-shipper"
_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "ascend-elk"}
_CONFIG = "/etc/ascend-elk/filebeat"
_DATA = "/usr/share/filebeat/data"
_HOST_DATA = "/var/lib/ascend-elk-filebeat"
# Taints that MindCluster's own DaemonSets on NPU nodes tolerate (ascend-device-plugin, its YAML files)
_TAINTS = ("huawei.com/Ascend910", "huawei.com/Ascend310P", "huawei.com/Ascend310")
_TOLERATIONS: list[dict[str, str]] = [
    *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in _TAINTS),
    {"key": "device-plugin", "operator": "Equal", "value": "v2", "effect": "NoSchedule"},
]
# What a ConfigMap may hold
_LIMIT = 1 << 20
_PRIVATE, _OWNER_ONLY = 0o400, 0o600
Manifest = dict[str, Any]


def manifests(
    files: Mapping[str, str],
    mounted: Sequence[str],
    options: RenderOptions,
    namespace: str,
    node_selector: Mapping[str, str],
    image: str,
) -> dict[str, str]:
    """Return the manifests, one file per kind, by path.

    Filebeat asks nothing of the API server: its account has no role and no token.

    Args:
        files: rendered configuration by path.
        mounted: directories of the host that it reads.
        options: choices of the rendering.
        namespace: where it goes.
        node_selector: labels of the nodes.
        image: of Filebeat.

    Raises:
        UserError: the configuration does not fit into a ConfigMap.
    """
    main = files["filebeat/filebeat.yml"]
    inputs = {
        PurePosixPath(path).name: text
        for path, text in files.items()
        if path.startswith("filebeat/inputs.d/")
    }
    if len(main) + sum(map(len, inputs.values())) > _LIMIT * 9 // 10:
        raise UserError("the configuration is too large for a ConfigMap; name the CANN versions with --cann")
    # The privileged level is what host paths need.
    level = {"pod-security.kubernetes.io/enforce": "privileged"}
    documents: dict[str, Manifest] = {
        "00-namespace": _object("v1", "Namespace", namespace, None, labels=level),
        "10-service-account": {
            **_object("v1", "ServiceAccount", NAME, namespace),
            "automountServiceAccountToken": False,
        },
        "20-config": {
            **_object("v1", "ConfigMap", NAME, namespace),
            "data": {"filebeat.yml": main, **inputs},
        },
        "30-daemonset": _daemonset(inputs, mounted, options, namespace, node_selector, image),
    }
    return {
        f"kubernetes/{name}.yaml": yaml.safe_dump(document, sort_keys=False, width=110)
        for name, document in documents.items()
    }


def _object(
    version: str, kind: str, name: str, namespace: str | None, labels: Mapping[str, str] | None = None
) -> Manifest:
    metadata: Manifest = {"name": name, "labels": {**_LABELS, **(labels or {})}}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _daemonset(
    inputs: Mapping[str, str],
    mounted: Sequence[str],
    options: RenderOptions,
    namespace: str,
    node_selector: Mapping[str, str],
    image: str,
) -> Manifest:
    names = {path: f"host-{number}" for number, path in enumerate(mounted)}
    volumes: list[Manifest] = [
        {"name": "config", "projected": {"defaultMode": _OWNER_ONLY, "sources": _sources(inputs, options)}},
        {"name": "data", "hostPath": {"path": _HOST_DATA, "type": "DirectoryOrCreate"}},
        # The lines have the zone of the host.
        {"name": "localtime", "hostPath": {"path": "/etc/localtime", "type": "File"}},
        *(
            {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
            for path, name in names.items()
        ),
    ]
    mounts: list[Manifest] = [
        {"name": "config", "mountPath": _CONFIG, "readOnly": True},
        {"name": "data", "mountPath": _DATA},
        {"name": "localtime", "mountPath": "/etc/localtime", "readOnly": True},
        # What is mounted below after the start is seen, too: volumes of new pods.
        *(
            {
                "name": name,
                "mountPath": path,
                "readOnly": True,
                "mountPropagation": "HostToContainer",
            }
            for path, name in names.items()
        ),
    ]
    container: Manifest = {
        "name": "filebeat",
        "image": image,
        "args": [
            "-e",
            f"--path.config={_CONFIG}",
            "-c",
            f"{_CONFIG}/filebeat.yml",
            # The host is the node, not the pod.
            "-E",
            "name=$(NODE_NAME)",
        ],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            *_credentials(options),
        ],
        # Logs belong to the users of the jobs, and are closed to others (0640).
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["DAC_READ_SEARCH"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "volumeMounts": mounts,
    }
    pod: Manifest = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": dict(node_selector),
        "tolerations": _TOLERATIONS,
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": volumes,
    }
    return {
        **_object("apps/v1", "DaemonSet", NAME, namespace),
        "spec": {
            "selector": {"matchLabels": dict(_LABELS)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": pod},
        },
    }


def _sources(inputs: Mapping[str, str], options: RenderOptions) -> list[Manifest]:
    """The directory of the configuration, as on any host: settings, inputs, certificates."""
    items = [{"key": "filebeat.yml", "path": "filebeat.yml"}]
    items += [{"key": name, "path": f"inputs.d/{name}"} for name in sorted(inputs)]
    sources: list[Manifest] = [{"configMap": {"name": NAME, "items": items}}]
    if options.tls:
        keys = ["ca.crt"] if options.parser == "ingest" else ["ca.crt", "filebeat.crt", "filebeat.key"]
        certificates = [{"key": key, "path": f"certs/{key}", "mode": _PRIVATE} for key in keys]
        sources.append({"secret": {"name": CERTIFICATES, "items": certificates}})
    return sources


def _credentials(options: RenderOptions) -> list[Manifest]:
    """Environment variables that Filebeat's configuration refers to, out of a Secret with the same keys."""
    if options.parser != "ingest":
        return []
    names = {
        "api-key": ["ASCEND_ELK_SHIPPER_API_KEY"],
        "basic": ["ASCEND_ES_USER", "ASCEND_ES_PASSWORD"],
        "none": [],
    }[options.auth]
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": CREDENTIALS, "key": name}}} for name in names
    ]
