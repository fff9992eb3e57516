// A control server for AdmissionWebhooks (docs/access.md): encoders have to know a token, everybody may play.
//
//   SECRET=... TOKEN=... node examples/webhook-server.mjs
//
// Server.xml, in the virtual host:
//
//   <AdmissionWebhooks>
//     <ControlServerUrl>http://127.0.0.1:9090/</ControlServerUrl>
//     <SecretKey>...</SecretKey>
//     <Timeout>3000</Timeout>
//     <Enables><Providers>rtmp,srt,webrtc</Providers><Publishers>webrtc,llhls</Publishers></Enables>
//   </AdmissionWebhooks>
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';

const { SECRET = '', TOKEN = '', PORT = '9090' } = process.env;
if (SECRET === '' || TOKEN === '') throw new Error('SECRET and TOKEN are needed');

const server = createServer(async (request, response) => {
  const body = await buffer(request);
  if (!isSigned(body, request.headers['x-ome-signature'])) return response.writeHead(401).end();
  const { client, request: asked } = JSON.parse(body);
  console.log(`${asked.status} ${asked.direction} ${asked.protocol} ${client.address} ${new URL(asked.url).pathname}`);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(asked.status === 'closing' ? {} : decide(asked)));
});
server.listen(Number(PORT), '127.0.0.1', () => console.log(`listening on port ${server.address().port}`));

/** Also possible: `lifetime` in milliseconds, and `new_url` for another stream. */
function decide({ direction, url }) {
  if (direction === 'outgoing' || new URL(url).searchParams.get('token') === TOKEN) return { allowed: true };
  return { allowed: false, reason: 'wrong token' };
}

function isSigned(body, signature = '') {
  const expected = createHmac('sha1', SECRET).update(body).digest();
  const given = Buffer.from(signature, 'base64url');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
