#!/usr/bin/env python3
"""The manifests for Kubernetes, carried out by hand: a namespace per pod with the network, the name, the table of hosts and the
/dev/shm that a pod of an indexed job has; variables, command and policy of failures are those of the manifest. The ranks
must find each other, and after a pod was killed go on to the policy of one process.

ci/pods.py [COBRE]      needs root (network namespaces) and python3-yaml
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import yaml

LIMIT = 180
DEPLOY = pathlib.Path("examples/deploy")
DOMAIN = "default.svc.cluster.local"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def wait_until(what, holds):
    until = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"pods: waited {LIMIT} s in vain: {what}")
        time.sleep(0.05)


class Cluster:
    """A network of pods."""

    def __init__(self, count):
        self.names = [f"cobre-pod-{index}" for index in range(count)]

    def open(self):
        ip("link", "add", "cobre-pods", "type", "bridge")
        ip("link", "set", "cobre-pods", "up")
        for index, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", f"cobre-pods{index}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"cobre-pods{index}", "master", "cobre-pods", "up")
            for words in (["addr", "add", f"{self.address(index)}/24", "dev", "eth0"], ["link", "set", "eth0", "up"],
                          ["link", "set", "lo", "up"]):
                ip("-n", name, *words)

    @staticmethod
    def address(index):
        return f"10.83.6.{index + 1}"

    def close(self):
        for index, name in enumerate(self.names):
            subprocess.run(["ip", "link", "del", f"cobre-pods{index}"], stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", "cobre-pods"], stderr=subprocess.DEVNULL)


class IndexedJob:
    """The Job of a manifest. Paths and words of it that are those of a cluster become others."""

    def __init__(self, manifest, scratch, others):
        documents = [part for part in yaml.safe_load_all((DEPLOY / manifest).read_text()) if part]
        self.job = next(part for part in documents if part["kind"] == "Job")
        service = next(part for part in documents if part["kind"] == "Service")
        self.scratch, self.others = scratch, others
        self.name, self.spec = self.job["metadata"]["name"], self.job["spec"]
        self.pod = self.spec["template"]["spec"]
        self.container = self.pod["containers"][0]
        assert self.pod["subdomain"] == service["metadata"]["name"] and service["spec"]["clusterIP"] == "None"
        assert service["spec"]["selector"] == {"job-name": self.name}
        self.count = self.spec["completions"]

    def adapted(self, text):
        for theirs, ours in self.others.items():
            text = text.replace(theirs, ours)
        return text

    def start(self, cluster, index):
        """A pod. Its table of hosts has itself; rank 0's name, which a cluster has in its DNS, is there too."""
        table = self.scratch / f"hosts-{index}"
        entries = {0, index}
        lines = [f"{cluster.address(i)}\t{self.name}-{i}.{self.pod['subdomain']}.{DOMAIN}\t{self.name}-{i}" for i in sorted(entries)]
        table.write_text("127.0.0.1\tlocalhost\n" + "\n".join(lines) + "\n")
        environment = {one["name"]: self.adapted(one["value"]) for one in self.container["env"]}
        environment |= {"JOB_COMPLETION_INDEX": str(index), "PATH": os.environ["PATH"]}
        inside = (f"mount --bind {table} /etc/hosts && mount -t tmpfs tmpfs /dev/shm && hostname {self.name}-{index} && "
                  'exec env -i "$@"')
        words = [f"{name}={value}" for name, value in environment.items()]
        words += [self.adapted(word) for word in self.container["command"]]
        return subprocess.Popen(
            ["ip", "netns", "exec", cluster.names[index], "unshare", "--uts", "sh", "-c", inside, "sh", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def is_tried_again(self, code):
        """The decision of the policy about a container that ended with this code."""
        for rule in self.spec.get("podFailurePolicy", {}).get("rules", []):
            codes = rule.get("onExitCodes", {})
            if codes.get("operator") == "In" and code in codes["values"]:
                assert rule["action"] == "FailJob"
                return False
        return True


def code_of(pod):
    return 128 - pod.returncode if pod.returncode < 0 else pod.returncode


def ranks_meet(cobre, scratch):
    mean = str(pathlib.Path(cobre).parent / "examples/mean")
    job = IndexedJob("kubernetes.yaml", scratch, {"program": mean, "/run/cobre": str(scratch)})
    cluster = Cluster(job.count)
    try:
        cluster.open()
        pods = [job.start(cluster, index) for index in range(job.count)]
        said = [pod.communicate(timeout=LIMIT)[0] for pod in pods]
        assert [pod.returncode for pod in pods] == [0] * job.count, said
        for index, text in enumerate(said):
            assert text.startswith(f"rank {index} of {job.count} on tcp: mean "), said
    finally:
        cluster.close()
    print(f"pods: {job.count} pods of kubernetes.yaml are one job")


def digest(output):
    return json.loads((output / "run.json").read_text())["policy_sha256"]


def killed_pod_costs_no_bits(cobre, scratch):
    study = scratch / "study"
    study.mkdir()
    (study / "case").symlink_to(os.path.abspath("examples/one-reservoir"))
    length = ["--iterations=300", "--threads=1", "--quiet"]
    subprocess.run([cobre, "run", study / "case", "--output", scratch / "alone", *length], check=True)
    others = {"/study": str(study), "/run/cobre": str(scratch), "minutes:1": "iterations:1"}
    job = IndexedJob("kubernetes-spot.yaml", scratch, others)
    job.container["command"] = [cobre, *job.container["command"][1:], *length]
    cluster = Cluster(job.count)
    pods, tries = {}, {}
    try:
        cluster.open()
        pods = {index: job.start(cluster, index) for index in range(job.count)}
        wait_until("a checkpoint is there", lambda: any((study / "out/checkpoint").glob("*")))
        assert all(pod.poll() is None for pod in pods.values()), [pod.communicate()[0] for pod in pods.values()]
        pods[2].send_signal(signal.SIGKILL)

        def all_done():
            for index, pod in list(pods.items()):
                if pod.poll() not in (None, 0):
                    said = pod.stdout.read()
                    assert job.is_tried_again(code_of(pod)), (code_of(pod), said)
                    tries[index] = tries.get(index, 0) + 1
                    assert tries[index] <= job.spec["backoffLimitPerIndex"], said
                    pods[index] = job.start(cluster, index)
            return all(pod.poll() == 0 for pod in pods.values())

        wait_until("all pods are done", all_done)
        assert set(tries) == set(range(job.count)), tries
        assert digest(study / "out") == digest(scratch / "alone")
    finally:
        for pod in pods.values():
            pod.kill()
            pod.wait()
        cluster.close()
    print(f"pods: after one of {job.count} pods of kubernetes-spot.yaml was killed, all went on to the same policy")


def main():
    cobre = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/cobre")
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        secret = scratch / "secret"
        secret.touch(0o600)
        secret.write_bytes(os.urandom(32))
        ranks_meet(cobre, scratch)
        killed_pod_costs_no_bits(cobre, scratch)


if __name__ == "__main__":
    main()
