import { Socket } from 'node:net';
import test from 'ava';
import { LIMITS } from '../../../../src/web/limits.ts';
import { parseRequest } from '../../../../src/web/lean-http/request.ts';

const SOCKET = new Socket();

function parse(head: string) {
  const request = parseRequest(head, SOCKET, undefined);
  return request && { url: request.url, headers: { ...request.headers } };
}

/** A request with some lines after its first. */
function get(...lines: string[]): string {
  return `GET /a HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
}

test('a plain request has its path, query and the fields that are read, without white space around them', (t) => {
  t.deepEqual(
    parse(
      'GET /a/b.m3u8?x=%zz&y=#z HTTP/1.1\r\nHOST:a.example:80\r\nUser-Agent: x (y; z) "q"\r\nX-Empty:\r\n' +
        'Accept-Encoding:\t gzip, br \t\r\norigin: https://a:1\r\nRange: bytes=0-\r\nX-Forwarded-Host: b\r\n' +
        'Access-Control-Request-Headers: x, y\r\nConnection: Keep-Alive\r\n\r\n',
    ),
    {
      url: '/a/b.m3u8?x=%zz&y=#z',
      headers: {
        host: 'a.example:80',
        'accept-encoding': 'gzip, br',
        origin: 'https://a:1',
        range: 'bytes=0-',
        'x-forwarded-host': 'b',
        'access-control-request-headers': 'x, y',
      },
    },
  );
  for (const host of ['a', 'a_b-c.d', '127.0.0.1:65535', '[::1]', '[2001:db8::1]:80'])
    t.is(parse(get(`Host: ${host}`))?.headers.host, host);
});

const HOST = 'Host: a';
const UNUSUAL: Readonly<Record<string, string>> = {
  'no host': get('X: y'),
  'no field': get(),
  'two hosts': get(HOST, HOST),
  'two hosts, written differently': get(HOST, 'hOST: a'),
  'an empty host': get('Host:'),
  'a host with a user': get('Host: a@b'),
  'a list of hosts': get('Host: a, b'),
  'a host with a path': get('Host: a/b'),
  'a transfer encoding': get(HOST, 'Transfer-Encoding: chunked'),
  'a transfer encoding, written differently': get(HOST, 'tRANSFER-eNCODING: identity'),
  'a length': get(HOST, 'Content-Length: 0'),
  'a length and a transfer encoding': get(HOST, 'Content-Length: 1', 'Transfer-Encoding: chunked'),
  'an expectation': get(HOST, 'Expect: 100-continue'),
  'an upgrade': get(HOST, 'Upgrade: websocket'),
  'an upgrade to HTTP/2': get(HOST, 'HTTP2-Settings: x'),
  'a trailer': get(HOST, 'Trailer: x'),
  'accepted trailers': get(HOST, 'TE: trailers'),
  'a connection that closes': get(HOST, 'Connection: close'),
  'a connection with options': get(HOST, 'Connection: keep-alive, upgrade'),
  'a connection to a proxy': get(HOST, 'Proxy-Connection: close'),
  'a second connection field': get(HOST, 'Connection: keep-alive', 'Connection: close'),
  'a repeated field that is read': get(HOST, 'Accept-Encoding: gzip', 'Accept-Encoding: gzip;q=0'),
  'a space before the colon': get('Host : a'),
  'a space before the name': get(' Host: a'),
  'a folded line': get(HOST, 'X: a', ' b'),
  'a line without a colon': get(HOST, 'X'),
  'a line without a name': get(HOST, ': x'),
  'a name with a parenthesis': get(HOST, 'X(): y'),
  'a null character': get(HOST, 'X: a\0b'),
  'a control character': get(HOST, 'X: a\x7fb'),
  'a byte beyond ASCII': get(HOST, 'X: \xe4'),
  'a carriage return alone': get(HOST, 'X: a\rb'),
  'a line feed alone': get(HOST, 'X: a\nY: b'),
  'line feeds only': get(HOST).replaceAll('\r', ''),
  'a line feed at the end': `GET /a HTTP/1.1\r\n${HOST}\r\n\n`,
  'an empty line before': `\r\n${get(HOST)}`,
  'bytes behind': `${get(HOST)}x`,
  'another method': get(HOST).replace('GET', 'HEAD'),
  'a method in lower case': get(HOST).replace('GET', 'get'),
  'a longer method': get(HOST).replace('GET', 'GETS'),
  'HTTP/1.0': get(HOST).replace('1.1', '1.0'),
  'HTTP/1.2': get(HOST).replace('1.1', '1.2'),
  'HTTP/0.9': 'GET /a\r\n\r\n',
  'a protocol in lower case': get(HOST).replace('HTTP', 'http'),
  'an absolute target': get(HOST).replace('/a', 'http://a/a'),
  'the target *': get(HOST).replace('/a', '*'),
  'no target': get(HOST).replace('/a', ''),
  'two spaces': get(HOST).replace(' /', '  /'),
  'a tab': get(HOST).replace(' /', '\t/'),
  'a space in the target': get(HOST).replace('/a', '/a b'),
  'a space at the end of the line': get(HOST).replace('1.1', '1.1 '),
  'a byte beyond ASCII in the target': get(HOST).replace('/a', '/\xe4'),
  'too many fields': get(HOST, ...Array.from({ length: LIMITS.headers }, (_, index) => `X-${index}: y`)),
  'too long a head': get(HOST, `X: ${'y'.repeat(LIMITS.headerBytes)}`),
};

for (const [what, head] of Object.entries(UNUSUAL)) {
  test(`${what}: not for this reader`, (t) => {
    t.is(parse(head), undefined);
  });
}

test('the same fields are read once for a connection', (t) => {
  const first = parseRequest(get(HOST, 'Range: bytes=0-1'), SOCKET, undefined);
  const same = parseRequest(get(HOST, 'Range: bytes=0-1').replace('/a', '/b'), SOCKET, first?.fields);
  t.is(same?.headers, first?.headers);
  t.is(same?.url, '/b');
  const other = parseRequest(get(HOST, 'Range: bytes=0-2'), SOCKET, first?.fields);
  t.is(other?.headers.range, 'bytes=0-2');
});
