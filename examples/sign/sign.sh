#!/usr/bin/env bash
# Prints a URL that is signed for SignedPolicy (docs/access.md).
#
#   sign.sh URL KEY EXPIRES     URL with its port, EXPIRES in milliseconds since 1970
set -euo pipefail
url=$1 key=$2 expires=$3

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
policy=$(printf '{"url_expire":%s}' "$expires" | base64url)
signature=$(printf %s "$url?policy=$policy" | openssl dgst -sha1 -hmac "$key" -binary | base64url)
echo "$url?policy=$policy&signature=$signature"
