import { once } from 'node:events';
import { BlockList, connect } from 'node:net';
import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { CertificateStore } from '../../../../src/tls/certificates.ts';
import { HANDSHAKE } from '../../../../src/tls/tls-front.ts';
import { h264 } from '../../../support/rtmp/flv-media.ts';
import { openTls, shownName } from '../../../support/network/http-client.ts';
import { RtmpClient, type RtmpClientOptions } from '../../../support/rtmp/rtmp-client.ts';
import { startRtmp, type RtmpSetup } from '../../../support/rtmp/rtmp-server.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { until } from '../../../support/time/until.ts';
import { CertificateFolder, issue } from '../../../support/network/x509.ts';

const quiet = pino({}, { write: () => {} });

async function start(t: ExecutionContext, hosts: readonly string[], setup: RtmpSetup = {}) {
  const folder = new CertificateFolder(t);
  const certificates = new CertificateStore({ folder: folder.path, log: quiet });
  const load = (name: string) =>
    certificates.load({ name, host: { names: [name], tls: folder.write(name, issue(name)) } });
  for (const host of hosts) await load(host);
  const rtmp = await startRtmp({ ...setup, certificates });
  t.teardown(() => rtmp.close());
  /** Publishes, and answers what the stream tells of where it comes from. */
  const publish = async (key: string, options: RtmpClientOptions) => {
    const client = await RtmpClient.publish(key, options);
    t.teardown(() => client.close());
    client.metadata({ videocodecid: 7 });
    const { config, frames } = h264();
    client.video(config, 0);
    frames.forEach((frame, i) => client.video(frame, i * 40));
    const recording = await until('it is announced', () => rtmp.recordings.find(({ input }) => input.name === key));
    return { client, source: recording.input.source };
  };
  const messages = () => rtmp.lines.map(({ msg }) => String(msg));
  return { ...rtmp, load, messages, publish };
}

test('a publisher comes in over TLS alone, and the stream says so', async (t) => {
  const { tlsPort, port, publish } = await start(t, ['localhost'], { onlyTls: true });
  t.is(port, 0);
  for (const [key, tcUrl] of [
    ['one', `rtmps://localhost:${tlsPort}/app`],
    ['two', `rtmp://localhost:${tlsPort}/app`],
  ] as const) {
    const { client, source } = await publish(key, { port: tlsPort, servername: 'localhost', tcUrl });
    t.is(source.url, `rtmps://localhost:${tlsPort}/app/${key}`);
    t.like(source.connection!(), {
      transport: 'TCP',
      protocol: 'TCP',
      localAddress: '127.0.0.1',
      localPort: tlsPort,
      remoteAddress: '127.0.0.1',
      remotePort: client.socket.localPort,
    });
  }
});

test('plain and TLS clients publish side by side, and are counted together', async (t) => {
  const { server, port, tlsPort, publish } = await start(t, ['localhost']);
  const plain = await publish('plain', { port });
  const secure = await publish('secure', { port: tlsPort, servername: 'localhost' });
  t.is(server.sessions, 2);
  t.is(plain.source.url, `rtmp://127.0.0.1:${port}/app/plain`);
  t.is(secure.source.url, `rtmps://127.0.0.1:${tlsPort}/app/secure`);
  secure.client.close();
  plain.client.close();
  await until('both are gone', () => server.sessions === 0);
});

test('the certificate goes by the name that is asked for, and a new one is for new connections', async (t) => {
  const { tlsPort, load } = await start(t, ['first', 'second']);
  for (const name of ['first', 'second']) t.is(shownName(await openTls(t, tlsPort, { servername: name })), name);
  const serial = async () => (await openTls(t, tlsPort, { servername: 'second' })).getPeerCertificate().serialNumber;
  const client = await RtmpClient.publish('live', { port: tlsPort, servername: 'second' });
  t.teardown(() => client.close());
  const before = await serial();
  await load('second');
  t.not(await serial(), before);
  await client.call('createStream', null);
});

test('an RTMP client that uses TLS on the plain port, or the reverse, is logged as such', async (t) => {
  const { port, tlsPort, messages, server } = await start(t, ['localhost']);
  for (const digest of [undefined, 0] as const) {
    const plain = connect(tlsPort, '127.0.0.1').on('error', () => {});
    const c1 = Buffer.alloc(1537);
    c1[0] = 3;
    if (digest === 0) c1.writeUInt32BE(0x80000702, 5);
    plain.write(c1);
    await new Promise((resolve) => plain.once('close', resolve));
  }
  t.true(messages().includes('RTMP publisher refused: the client does not speak TLS'));
  await t.throwsAsync(openTls(t, port));
  await until('the log has it', () =>
    messages().includes('RTMP session closed: the client speaks TLS on a port without TLS'),
  );
  await until('all are gone', () => server.sessions === 0);
});

test('connections to RTMP over TLS without a certificate are rejected, until there is one', async (t) => {
  const { tlsPort, load, messages, server } = await start(t, []);
  await t.throwsAsync(openTls(t, tlsPort), { code: 'ECONNRESET' });
  t.true(messages().includes('RTMP publisher refused: no certificate is loaded'));
  t.is(server.sessions, 0);
  await load('late');
  t.is(shownName(await openTls(t, tlsPort)), 'late');
});

test('the client of an RTMP connection with a PROXY header is the one in the header', async (t) => {
  const proxyNetworks = new BlockList();
  proxyNetworks.addSubnet('127.0.0.0', 8);
  const { tlsPort, publish } = await start(t, ['localhost'], { proxyNetworks });
  const preface = 'PROXY TCP4 203.0.113.7 192.0.2.1 5555 443\r\n';
  const { source } = await publish('live', { port: tlsPort, servername: 'localhost', preface });
  t.like(source.connection!(), {
    remoteAddress: '203.0.113.7',
    remotePort: 5555,
    localAddress: '192.0.2.1',
    localPort: 443,
  });
});

test('the oldest of too many connections without a handshake gives way, and publishers stay', async (t) => {
  const { tlsPort, server, messages } = await start(t, ['localhost']);
  const client = await RtmpClient.publish('live', { port: tlsPort, servername: 'localhost' });
  t.teardown(() => client.close());
  const silent = Array.from({ length: 513 }, () =>
    connect(tlsPort, '127.0.0.1')
      .on('error', () => {})
      .resume(),
  );
  t.teardown(() => silent.forEach((socket) => socket.destroy()));
  await Promise.race(silent.map((socket) => once(socket, 'close')));
  await until('the rest is there', () => server.sessions === 513);
  t.true(messages().includes('RTMP publisher refused: too many connections wait to publish'));
  await client.call('createStream', null);
  await server.close();
  await until('all are gone', () => server.sessions === 0);
});

test.serial('a handshake that does not come to its end is cut off', async (t) => {
  const limit = mock.property(HANDSHAKE, 'longestMs', 200);
  t.teardown(() => limit.mock.restore());
  const { tlsPort, server, messages } = await start(t, ['localhost']);
  const silent = connect(tlsPort, '127.0.0.1')
    .on('error', () => {})
    .resume();
  await once(silent, 'close');
  t.true(messages().includes('RTMP publisher refused: TLS handshake timeout'));
  await until('it is gone', () => server.sessions === 0);
});

test('an address in use fails the start, and frees the other port', async (t) => {
  const { server, tlsPort } = await start(t, ['localhost']);
  const { RtmpServer } = await import('../../../../src/providers/rtmp/server.ts');
  const certificates = new CertificateStore({ folder: '.', log: quiet });
  const handOver = { registry: new Registry(), hasSuccessor: () => false };
  const options = {
    access: undefined as never,
    log: quiet,
    host: '127.0.0.1',
    publishes: true,
    extended: true,
    handOver,
  };
  await t.throwsAsync(RtmpServer.listen({ ...options, port: 0, tls: { port: tlsPort, certificates } }), {
    code: 'EADDRINUSE',
  });
  await server.close();
  const again = await RtmpServer.listen({ ...options, tls: { port: tlsPort, certificates } });
  t.is(again.tlsPort, tlsPort);
  await again.close();
});
