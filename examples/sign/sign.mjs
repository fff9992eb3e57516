// Prints a URL that is signed for SignedPolicy (docs/access.md).
//
//   node sign.mjs URL KEY EXPIRES     URL with its port, EXPIRES in milliseconds since 1970
import { createHmac } from 'node:crypto';

const [url, key, expires] = process.argv.slice(2);
const policy = Buffer.from(JSON.stringify({ url_expire: Number(expires) })).toString('base64url');
const signature = createHmac('sha1', key).update(`${url}?policy=${policy}`).digest('base64url');
console.log(`${url}?policy=${policy}&signature=${signature}`);
