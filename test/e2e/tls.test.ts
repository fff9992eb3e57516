import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import type { Page } from 'playwright-core';
import { launchBrowser } from '../support/hls/browser.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { openClient, openTls, PROTOCOLS, shownName, type Client } from '../support/network/http-client.ts';
import { Kiln, serverXml, TOKEN } from '../support/server/kiln.ts';
import { LiveStream } from '../support/server/live-stream.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { long } from '../support/runner/long.ts';
import { SignallingClient } from '../support/webrtc/signalling-client.ts';
import { openTlsPort } from '../support/network/tls-port.ts';
import { inPlace } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';
import { CertificateFolder, issue } from '../support/network/x509.ts';
import { shared } from '../support/runner/shared.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const authorization = `Basic ${Buffer.from(TOKEN).toString('base64')}`;

const teardown = new Teardown();
const folder = new CertificateFolder(teardown);
const root = issue('root', { authority: true });
writeFileSync(`${folder.path}/root.crt`, root.cert);
const tls = folder.write('kiln', issue('localhost', { issuer: root }));
// a judge of certificates that is not Node
const verified = ['-tls_verify', '1', '-ca_file', `${folder.path}/root.crt`];

let kiln: Kiln;
let ports: { readonly https: number; readonly apiTls: number; readonly rtmps: number };
let publisher: Program;
/** Has both players. */
let page: Page;
/** A connection to the management API that outlives each certificate. */
let kept: Client;

test.before(async () => {
  const launching = launchBrowser();
  teardown.teardown(async () => (await launching).close());
  const [browser] = await Promise.all([launching, startPublished()]);
  page = await browser.newPage({ ignoreHTTPSErrors: true });
  kept = await openClient(teardown, 'h2', ports.apiTls);
});
test.after.always(() => teardown.run());

/** Starts a server, and a publisher over TLS. */
async function startPublished(): Promise<void> {
  kiln = await Kiln.start({
    tls,
    llhls: '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>1</SegmentDuration>',
  });
  teardown.teardown(() => kiln.stop());
  ports = kiln.ports as typeof ports;
  // it is ready a moment before it says so
  const urls = [ports.https, ports.apiTls].map((port) => `https://127.0.0.1:${port}`);
  await until('the secure ports are printed', () => urls.every((url) => kiln.stdout.includes(url)));
  publisher = new Program('ffmpeg', [...patternArguments(), '-f', 'flv', ...verified, rtmpsUrl()]);
  teardown.teardown(() => publisher.stop());
}

const rtmpsUrl = () => `rtmps://localhost:${ports.rtmps}/app/live`;
const bothPlay = () =>
  until('both players play', async () => (await page.locator('.figures dd', { hasText: '640×360' }).count()) === 2);
const call = async (client: Client, path: string, method = 'GET') =>
  (await client.call(path, { method, headers: { authorization } })).status;

test.serial('ffmpeg publishes over RTMPS, and ffprobe takes the certificate and the stream', async (t) => {
  const { input } = await kiln.liveStream('live');
  t.is(input.sourceUrl, rtmpsUrl());
  t.like(input.connection, { transport: 'TCP', localPort: ports.rtmps });
  await until('ffprobe takes the certificate and the stream', async () => {
    const url = `https://localhost:${ports.https}/app/live/llhls.m3u8`;
    const args = ['-v', 'error', ...verified, '-show_entries', 'stream=codec_name', '-of', 'csv=p=0', url];
    const { stdout } = await promisify(execFile)('ffprobe', args).catch(() => ({ stdout: '' }));
    return stdout.includes('h264') && stdout.includes('aac');
  });
});

/** Plays in the browser, by LL-HLS and by WebRTC. */
const watch = shared(async () => {
  await page.goto(`https://localhost:${ports.https}/app/live?mode=both`);
  await bothPlay();
});

test.serial('a browser plays LL-HLS over HTTP/2, and WebRTC beside it', async (t) => {
  await watch();
  const protocols = (await page.evaluate(
    'performance.getEntriesByType("resource").filter(({ name, responseStatus }) => name.includes(".m4s") && responseStatus === 200).map((entry) => entry.nextHopProtocol)',
  )) as string[];
  t.true(protocols.length > 0);
  t.true(
    protocols.every((protocol) => protocol === 'h2'),
    protocols.join(),
  );
});

for (const [round, protocol] of PROTOCOLS.entries()) {
  const name = `renewed-${round}`;
  test.serial(`the API renews certificates of all ports, asked over ${protocol}, and keeps connections`, async (t) => {
    await watch();
    folder.write('kiln', issue(name, { issuer: root }));
    const client = await openClient(t, protocol, ports.apiTls);
    t.is(await call(client, '/v1/vhosts:reloadAllCertificates', 'POST'), 200);
    t.is(await call(client, '/v1/managers/api:reloadCertificate', 'POST'), 200);
    t.is(await call(client, '/v1/vhosts/default:reloadCertificate', 'POST'), 200);
    for (const port of [ports.https, ports.apiTls, ports.rtmps])
      t.is(shownName(await openTls(t, port, { servername: 'localhost' })), name);
    t.is(await call(kept, '/v1/vhosts'), 200);
  });
}

test.serial('an unusable renewed certificate is logged and not used, and players play on', async (t) => {
  await watch();
  writeFileSync(tls.certPath, 'nonsense');
  t.is(await call(kept, '/v1/vhosts:reloadAllCertificates', 'POST'), 500);
  t.is(shownName(await openTls(t, ports.https, { servername: 'localhost' })), 'renewed-1');
  await until('the log has it', () =>
    /the certificate was not reloaded: .*kiln\.crt.* holds no certificate in PEM form/.test(kiln.log),
  );
  await bothPlay();
  t.true(publisher.running);
  t.is((await kiln.stream('live')).status, 200);
});

test('a certificate of Server.xml that cannot be used ends the start with 2 and names file and element', async (t) => {
  const folder = new CertificateFolder(t);
  const tls = { ...folder.write('good', issue('localhost')), keyPath: folder.write('other', issue('other')).keyPath };
  const file = `${folder.path}/Server.xml`;
  writeFileSync(
    file,
    serverXml({ rtmp: 1935, http: 3333, https: 3334, api: 8081, apiTls: 8082, ice: [10000, 10001] }, { tls }),
  );
  for (const args of [['--check'], []]) {
    const run = promisify(execFile)(process.execPath, [MAIN, '--config', file, ...args]);
    const { code, stderr } = (await t.throwsAsync(run)) as unknown as { code: number; stderr: string };
    t.is(code, 2);
    const [api, vhost] = stderr.split('\n');
    t.true(api?.startsWith(`${file}: Server/Managers/Host/TLS/KeyPath: "${tls.keyPath}" is not the key of`), api);
    t.true(
      vhost?.startsWith(`${file}: Server/VirtualHosts/VirtualHost[1]/Host/TLS/KeyPath: "${tls.keyPath}" is not`),
      vhost,
    );
  }
});

long('WebRTC over TLS: signalling by WSS, and WHEP in both versions of HTTP', async (t) => {
  const { registry, publisher, signalling: routes } = await startWebrtc(t);
  const live = new LiveStream(registry, [await h264(), await opus()]);
  t.teardown(() => live.close());
  const port = await openTlsPort(t, routes.routes({ play: publisher.handler }));

  const signalling = await SignallingClient.open(`wss://127.0.0.1:${port}/app/stream`);
  t.teardown(() => signalling.socket.terminate());
  signalling.send({ command: 'request_offer' });
  const offer = await signalling.command('offer');
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  const sdp = await peer.answerTo(offer?.sdp?.sdp ?? '');
  signalling.send({ command: 'answer', id: offer?.id, peer_id: 0, sdp: { type: 'answer', sdp } });
  await peer.until(() => peer.frames().length >= 10);

  for (const protocol of PROTOCOLS) {
    const client = await openClient(t, protocol, port);
    const offering = new ViewerPeer();
    t.teardown(() => offering.close());
    const headers = { 'content-type': 'application/sdp' };
    const body = await offering.offer();
    const answer = await client.call('/app/stream?direction=whep', { method: 'POST', headers, body });
    t.is(answer.status, 201);
    offering.answer(answer.body.toString());
    await offering.until(() => offering.frames().length >= 10);
    const location = inPlace(answer.headers.location as string, '/app/stream');
    const patch = {
      method: 'PATCH',
      headers: { 'content-type': 'application/trickle-ice-sdpfrag' },
      body: 'a=ice-ufrag:x\r\n',
    };
    t.is((await client.call(location, patch)).status, 428);
    t.is((await client.call(location, { method: 'OPTIONS' })).status, 200);
    t.is((await client.call(location, { method: 'DELETE' })).status, 200);
    t.is((await client.call(location, { method: 'DELETE' })).status, 404);
    t.is((await client.call('/app/stream', { method: 'POST', headers, body: 'x'.repeat(70_000) })).status, 413);
  }
  t.is(live.output.sessions.size, 1);
  await until('a closed connection ends its session', () => {
    signalling.socket.terminate();
    return live.output.sessions.size === 0;
  });
});
