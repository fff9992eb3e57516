import type { IncomingMessage } from 'node:http';
import test from 'ava';
import { httpAccess, type Via } from '../../../src/access/http-request.ts';

const SOCKET = { remoteAddress: '10.0.0.1', remotePort: 5000, localPort: 3333 };
const DIRECT: Via = { ip: '10.0.0.1' };
const PROXY: Via = { ip: '198.51.100.7', viaProxy: true };

function request(headers: Record<string, string>, encrypted = false): IncomingMessage {
  return { headers, url: '/app/s?a=%20b', socket: encrypted ? { ...SOCKET, encrypted } : SOCKET } as never;
}

test('the URL is what the client used, and the port of this server where it named none', (t) => {
  t.like(httpAccess(request({ host: 'h:81' }), DIRECT), { url: 'http://h:81/app/s?a=%20b', isPortAssumed: undefined });
  t.like(httpAccess(request({ host: 'h' }), DIRECT), { url: 'http://h:3333/app/s?a=%20b', isPortAssumed: true });
  t.is(httpAccess(request({ host: '[::1]' }, true), DIRECT).url, 'https://[::1]:3333/app/s?a=%20b');
  t.is(httpAccess(request({ host: 'h' }), DIRECT, 'ws').url, 'ws://h:3333/app/s?a=%20b');
  t.is(httpAccess(request({ ':authority': 'h:1' }, true), DIRECT).url, 'https://h:1/app/s?a=%20b');
});

const TOLD = {
  host: 'inner',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'a, live.example',
  'x-forwarded-port': '8443',
};

test('a trusted proxy gives scheme, host and port', (t) => {
  t.deepEqual(httpAccess(request(TOLD), PROXY), {
    url: 'https://live.example:8443/app/s?a=%20b',
    client: { address: '10.0.0.1', port: 5000, realAddress: '198.51.100.7', userAgent: undefined, localPort: 3333 },
  });
  t.is(httpAccess(request(TOLD), PROXY, 'ws').url, 'wss://live.example:8443/app/s?a=%20b');
  const { 'x-forwarded-port': _, ...without } = TOLD;
  t.like(httpAccess(request(without), PROXY), { url: 'https://live.example:443/app/s?a=%20b', isPortAssumed: true });
  t.is(httpAccess(request({ host: 'h:81', 'x-forwarded-proto': 'https' }), PROXY).url, 'https://h:81/app/s?a=%20b');
  t.is(httpAccess(request({ host: 'h', 'x-forwarded-port': 'x' }), PROXY).url, 'http://h:3333/app/s?a=%20b');
});

test('addresses in headers are believed from trusted proxies only', (t) => {
  const { url, client } = httpAccess(request({ ...TOLD, 'x-real-ip': '192.0.2.9' }), DIRECT);
  t.is(url, 'http://inner:3333/app/s?a=%20b');
  t.is(client.realAddress, '10.0.0.1');
});

test('X-Real-IP counts where the proxy sends no X-Forwarded-For', (t) => {
  const real = (headers: Record<string, string>) => httpAccess(request(headers), PROXY).client.realAddress;
  t.is(real({ 'x-real-ip': '192.0.2.9' }), '192.0.2.9');
  t.is(real({ 'x-real-ip': 'unknown' }), '198.51.100.7');
  t.is(real({ 'x-real-ip': '192.0.2.9', 'x-forwarded-for': '198.51.100.7' }), '198.51.100.7');
});

test('a bearer token is read from its header alone', (t) => {
  const bearer = (authorization?: string) =>
    httpAccess(request({ host: 'h', ...(authorization !== undefined && { authorization }) }), DIRECT).bearer;
  t.is(bearer('Bearer a.b-c_d'), 'a.b-c_d');
  t.is(bearer('bearer  x '), 'x');
  for (const other of [undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a b', 'xBearer a'])
    t.is(bearer(other), undefined);
});
