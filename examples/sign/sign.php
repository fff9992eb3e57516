<?php
// Prints a URL that is signed for SignedPolicy (docs/access.md).
//
//   php sign.php URL KEY EXPIRES     URL with its port, EXPIRES in milliseconds since 1970
function base64url($data) {
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

[, $url, $key, $expires] = $argv;
$policy = base64url(json_encode(['url_expire' => (int) $expires]));
$signature = base64url(hash_hmac('sha1', "$url?policy=$policy", $key, true));
echo "$url?policy=$policy&signature=$signature\n";
