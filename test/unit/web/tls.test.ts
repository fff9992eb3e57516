import { once } from 'node:events';
import { BlockList, connect } from 'node:net';
import { duplexPair } from 'node:stream';
import { mock } from 'node:test';
import { connect as connectTls } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { HANDSHAKE } from '../../../src/tls/tls-front.ts';
import { RefusalCounts } from '../../../src/access/refusal-counts.ts';
import { createHttpPort, type HttpPortOptions } from '../../../src/web/http-port.ts';
import { LIMITS } from '../../../src/web/limits.ts';
import {
  openClient,
  openSession,
  openTls,
  PROTOCOLS,
  shownName,
  type Client,
} from '../../support/network/http-client.ts';
import { until } from '../../support/time/until.ts';
import { CertificateFolder, issue } from '../../support/network/x509.ts';

const log = pino({}, { write: () => {} });

interface Setup extends Partial<HttpPortOptions> {
  readonly http2?: boolean;
  /** Names of virtual hosts, which are their host names too. */
  readonly hosts?: readonly string[];
}

async function open(t: ExecutionContext, { http2 = true, hosts = ['localhost'], ...options }: Setup = {}) {
  const folder = new CertificateFolder(t);
  const certificates = new CertificateStore({ folder: folder.path, log });
  const vhost = (name: string) => ({
    name,
    host: { names: [name], tls: folder.write(name.replaceAll('*', '_'), issue(name)) },
  });
  for (const name of hosts) await certificates.load(vhost(name));
  const port = createHttpPort({ log, tls: { certificates, http2 }, ...options });
  port.app.get('/who', async ({ ip, hostname, protocol, socket, raw }) => ({
    ip,
    hostname,
    protocol,
    port: socket.remotePort,
    version: raw.httpVersion,
  }));
  port.app.post('/body', async ({ body }) => ({ size: JSON.stringify(body).length }));
  port.app.get('/long', async () => Buffer.alloc(20_000_000, 'x'));
  const number = await port.listen(['127.0.0.1'], 0);
  t.teardown(() => port.close(0));
  return { number, port, certificates, vhost, folder };
}

interface Who {
  ip: string;
  hostname: string;
  protocol: string;
  port: number;
  version: string;
}

async function who(client: Client, headers?: Record<string, string>): Promise<Who> {
  const { body } = await client.call('/who', { headers });
  return JSON.parse(body.toString()) as Who;
}

test('both versions of HTTP serve on one port, call after call on one connection', async (t) => {
  const { number } = await open(t);
  for (const protocol of PROTOCOLS) {
    const client = await openClient(t, protocol, number);
    const seen = { ip: '127.0.0.1', hostname: 'localhost', protocol: 'https', port: client.socket.localPort };
    const version = protocol === 'h2' ? '2.0' : '1.1';
    for (let call = 0; call < 3; call++) t.deepEqual(await who(client), { ...seen, version } as Who);
    const head = await client.call('/who', { method: 'HEAD' });
    t.is(head.status, 200);
    t.true(Number(head.headers['content-length']) > 0);
    t.is(head.body.length, 0);
    t.is(head.headers.server, 'Kiln');
    t.is((await client.call('/nothing')).status, 404);
    t.is((await client.call(`/${'x'.repeat(5000)}`)).status, 404);
  }
});

test('HTTP/2 is offered where it is on only', async (t) => {
  const { number } = await open(t, { http2: false });
  const both = await openTls(t, number, { ALPNProtocols: ['h2', 'http/1.1'] });
  t.is(both.alpnProtocol, 'http/1.1');
  await t.throwsAsync(openTls(t, number, { ALPNProtocols: ['h2'] }), { message: /no application protocol/ });
  const none = await openTls(t, number);
  t.is(none.alpnProtocol, false);
  none.write('GET /who HTTP/1.1\r\nHost: a\r\n\r\n');
  t.regex(String((await once(none, 'data'))[0]), /^HTTP\/1.1 200 /);
});

test('the certificate goes by the name that the client asks for', async (t) => {
  const { number } = await open(t, { hosts: ['first.example', '*.example', 'a.example'] });
  const cases: [asked: string | undefined, shown: string][] = [
    ['first.example', 'first.example'],
    ['a.example', 'a.example'],
    ['b.example', '*.example'],
    ['elsewhere.org', 'first.example'],
    [undefined, 'first.example'],
  ];
  for (const [asked, shown] of cases) {
    t.is(shownName(await openTls(t, number, asked === undefined ? {} : { servername: asked })), shown, asked);
  }
});

test('a new certificate is for new connections; old ones go on', async (t) => {
  const { number, certificates, vhost } = await open(t, { hosts: ['first', 'second'] });
  const serial = (client: Client) => client.socket.getPeerCertificate().serialNumber;
  for (const protocol of PROTOCOLS) {
    for (const name of ['first', 'second']) {
      const old = await openClient(t, protocol, number, name);
      await who(old);
      await certificates.load(vhost(name));
      const fresh = await openClient(t, protocol, number, name);
      t.not(serial(fresh), serial(old));
      t.is(shownName(fresh.socket), name);
      t.is((await who(old)).hostname, name);
      t.is((await who(fresh)).hostname, name);
    }
  }
});

test('a session of a certificate that was replaced is not resumed', async (t) => {
  const { number, certificates, vhost } = await open(t, { hosts: ['first', 'second'] });
  const connectWith = async (session?: Buffer) => {
    const options = { host: '127.0.0.1', port: number, servername: 'second', rejectUnauthorized: false, session };
    const socket = connectTls(options).resume();
    t.teardown(() => socket.destroy());
    const ticket = once(socket, 'session') as Promise<[Buffer]>;
    await once(socket, 'secureConnect');
    return { reused: socket.isSessionReused(), ticket };
  };
  const [ticket] = await (await connectWith()).ticket;
  t.true((await connectWith(ticket)).reused);
  await certificates.load(vhost('second'));
  t.false((await connectWith(ticket)).reused);
});

test('connections without any certificate are rejected, until there is one', async (t) => {
  const { number, certificates, vhost } = await open(t, { hosts: [] });
  await t.throwsAsync(openTls(t, number), { code: 'ECONNRESET' });
  await certificates.load(vhost('late'));
  t.is(shownName(await openTls(t, number)), 'late');
});

test('the client of a TLS connection with a PROXY header is the one in the header', async (t) => {
  const proxyNetworks = new BlockList();
  proxyNetworks.addSubnet('127.0.0.0', 8);
  const { number } = await open(t, { proxyNetworks });
  const header = Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 5555 443\r\n');
  for (const protocol of PROTOCOLS) {
    for (const together of [true, false]) {
      const raw = connect(number, '127.0.0.1');
      t.teardown(() => raw.destroy());
      await once(raw, 'connect');
      const [near, far] = duplexPair();
      far.once('data', (hello: Buffer) => {
        if (!together) raw.write(header);
        raw.write(together ? Buffer.concat([header, hello]) : hello);
        far.pipe(raw);
      });
      raw.pipe(far);
      const ALPNProtocols = [protocol === 'h2' ? 'h2' : 'http/1.1'];
      const socket = connectTls({ socket: near, servername: 'localhost', rejectUnauthorized: false, ALPNProtocols });
      await once(socket, 'secureConnect');
      if (protocol === 'h2') {
        const session = openSession(t, socket);
        for (let call = 0; call < 2; call++) {
          const stream = session.request({ ':path': '/who' });
          t.regex(String((await once(stream, 'data'))[0]), /"ip":"203.0.113.7".*"port":5555/);
        }
      } else {
        socket.write('GET /who HTTP/1.1\r\nHost: a\r\n\r\n');
        t.regex(String((await once(socket, 'data'))[0]), /"ip":"203.0.113.7".*"port":5555/);
      }
    }
  }
});

test('X-Forwarded headers of a trusted proxy hold in both versions', async (t) => {
  const forwardedNetworks = new BlockList();
  forwardedNetworks.addSubnet('127.0.0.0', 8);
  const { number } = await open(t, { forwardedNetworks });
  const headers = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-host': 'public.example' };
  for (const protocol of PROTOCOLS) {
    const client = await openClient(t, protocol, number);
    t.like(await who(client, headers), { ip: '203.0.113.9', hostname: 'public.example' });
  }
});

test('bodies have their limit, and long answers arrive whole', async (t) => {
  const { number } = await open(t);
  for (const protocol of PROTOCOLS) {
    const send = async (size: number) => {
      const client = await openClient(t, protocol, number);
      const headers = { 'content-type': 'application/json' };
      return (await client.call('/body', { method: 'POST', headers, body: JSON.stringify('x'.repeat(size)) })).status;
    };
    t.is(await send(1_000_000), 200);
    t.is(await send(1_048_577), 413);
    const client = await openClient(t, protocol, number);
    const answers = await Promise.all([1, 2, 3].map(() => client.call('/long')));
    for (const { body } of answers) t.is(body.length, 20_000_000);
  }
});

test('bytes that are no TLS, or end in mid-handshake, cost their own connection, and are logged with the address', async (t) => {
  const lines: Record<string, unknown>[] = [];
  const recorded = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const refusals = new RefusalCounts();
  const { number } = await open(t, { log: recorded, refusals });
  const hello = Buffer.from('16030100f8010000f40303', 'hex');
  for (const bytes of ['GET / HTTP/1.1\r\n\r\n', hello, Buffer.alloc(5000, 0x16), '']) {
    const socket = connect(number, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => {}).resume();
    socket.end(bytes);
    await new Promise((resolve) => socket.once('close', resolve));
  }
  const reset = connect(number, '127.0.0.1');
  await once(reset, 'connect');
  reset.write(hello);
  reset.resetAndDestroy();
  t.like(lines[0], { event: 'client.refused', msg: 'HTTP client refused: the client does not speak TLS' });
  t.like(refusals.all()[0], { protocol: 'http', reason: 'tls' });
  t.is(refusals.all().length, 1);
  t.regex(String(lines[0]?.remote), /^127\.0\.0\.1:\d+$/);
  t.is((await who(await openClient(t, 'h2', number))).version, '2.0');
});

test.serial(
  'a handshake that does not come to its end is cut off, and a silent HTTP/1.1 client after it',
  async (t) => {
    const limits = [
      mock.property(HANDSHAKE, 'longestMs', 2000),
      mock.property(LIMITS, 'headersMs', 200),
      mock.property(LIMITS, 'checkMs', 50),
    ];
    t.teardown(() => limits.forEach(({ mock: limit }) => limit.restore()));
    const { number } = await open(t);
    const silent = connect(number, '127.0.0.1');
    t.teardown(() => silent.destroy());
    silent.on('error', () => {}).resume();
    const slow = await openTls(t, number);
    slow.write('GET /who HTTP/1.1\r\nHost: a\r\n');
    const answer = once(slow, 'data');
    await once(silent, 'close');
    t.regex(String((await answer)[0]), /^HTTP\/1.1 408 /);
  },
);

test('methods that no route has', async (t) => {
  const { number } = await open(t);
  const session = openSession(t, await openTls(t, number, { ALPNProtocols: ['h2'] }));
  for (const [headers, expected] of [
    [{ ':method': 'PROPFIND', ':path': '/who' }, 404],
    [{ ':method': 'CONNECT', ':authority': 'a:1' }, 405],
  ] as const) {
    const stream = session.request(headers);
    const [{ ':status': status }] = (await once(stream, 'response')) as [{ ':status': number }];
    t.is(status, expected);
    stream.close();
  }
});

test('headers beyond the limits end an HTTP/2 request, not its neighbours', async (t) => {
  const { number } = await open(t);
  const session = openSession(t, await openTls(t, number, { ALPNProtocols: ['h2'] }));
  const ask = (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve) => {
      const stream = session.request({ ':path': '/who', ...headers });
      stream
        .once('error', () => resolve(undefined))
        .once('response', ({ ':status': status }) => resolve(status))
        .resume();
    });
  t.is(await ask({}), 200, 'from here on both sides know the limits');
  t.is(await ask({ 'x-long': 'x'.repeat(20_000) }), undefined);
  t.is(await ask(Object.fromEntries(Array.from({ length: 120 }, (_, index) => [`x-${index}`, 'y']))), undefined);
  t.is(await ask({ 'x-long': 'x'.repeat(10_000) }), 200);
});

test('a client that takes back request after request loses its connection', async (t) => {
  const { number } = await open(t);
  const socket = await openTls(t, number, { ALPNProtocols: ['h2'] });
  const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
    const header = Buffer.alloc(9);
    header.writeUIntBE(payload.length, 0, 3);
    header.set([type, flags], 3);
    header.writeUInt32BE(stream, 5);
    return Buffer.concat([header, payload]);
  };
  // :method GET, :scheme https, :path /, :authority a (RFC 7541 appendix A and section 6.2.2)
  const fields = Buffer.from('828784010161', 'hex');
  const cancel = Buffer.from([0, 0, 0, 8]);
  socket.write(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0))]));
  socket.resume();
  let stream = 1;
  await until('the connection ends', () => {
    const frames: Buffer[] = [];
    for (let count = 0; count < 100; count++, stream += 2) {
      frames.push(frame(1, 5, stream, fields), frame(3, 0, stream, cancel));
    }
    if (!socket.destroyed) socket.write(Buffer.concat(frames));
    return socket.destroyed;
  });
  t.true(stream > 400, 'some are fine');
  t.true(stream < 20_000);
  t.is((await who(await openClient(t, 'h2', number))).version, '2.0');
});

test('streams beyond the limit of a connection wait for their turn', async (t) => {
  const { number } = await open(t);
  const client = await openClient(t, 'h2', number);
  const answers = await Promise.all(Array.from({ length: 300 }, () => who(client)));
  t.is(answers.length, 300);
});

test('closing lets a running HTTP/2 request end and cuts the rest', async (t) => {
  const { number, port } = await open(t);
  const idle = await openTls(t, number, { ALPNProtocols: ['h2'] });
  const session = openSession(t, await openTls(t, number, { ALPNProtocols: ['h2'] }));
  const handshaking = connect(number, '127.0.0.1');
  await once(handshaking, 'connect');
  const stream = session.request({ ':path': '/long' });
  await once(stream, 'response');
  const idleSession = openSession(t, idle);
  await once(idleSession, 'remoteSettings');
  const ends = [once(idleSession, 'close'), once(handshaking, 'close')];
  handshaking.on('error', () => {}).resume();
  const closed = port.close(60_000);
  await Promise.all(ends);
  let length = 0;
  for await (const chunk of stream) length += (chunk as Buffer).length;
  t.is(length, 20_000_000);
  await closed;
});
