# Prints a URL that is signed for SignedPolicy (docs/access.md).
#
#   python3 sign.py URL KEY EXPIRES     URL with its port, EXPIRES in milliseconds since 1970
import base64, hashlib, hmac, json, sys

def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()

url, key, expires = sys.argv[1:]
policy = base64url(json.dumps({'url_expire': int(expires)}, separators=(',', ':')).encode())
signature = base64url(hmac.new(key.encode(), f'{url}?policy={policy}'.encode(), hashlib.sha1).digest())
print(f'{url}?policy={policy}&signature={signature}')
