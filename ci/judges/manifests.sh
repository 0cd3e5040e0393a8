#!/usr/bin/env bash
# The manifests of examples/deploy for Kubernetes against the schemas of Kubernetes, strictly: an unknown key is an error.
# The schemas come with a package of the registry, into an environment that is gone at the end.
set -eu
cd "$(dirname "$0")/../.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place"
"$place/bin/python" -m pip install --quiet kubernetes-validate
# The first version that has all that they use, and the newest that the package knows.
newest=$("$place/bin/kubernetes-validate" --help | sed -n 's/.*Defaults to \([0-9]*\.[0-9]*\).*/\1/p')
for version in 1.29 "$newest"; do
    "$place/bin/kubernetes-validate" --strict --quiet -k "$version" examples/deploy/kubernetes*.yaml
    echo "manifests: hold on Kubernetes $version"
done
