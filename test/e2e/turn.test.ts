import { createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { LiveStream } from '../support/server/live-stream.ts';
import { long } from '../support/runner/long.ts';
import { addOwn } from '../support/server/own-pages.ts';
import { TurnServer } from '../support/webrtc/turn-server.ts';
import { until } from '../support/time/until.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';

const PLAYER = fileURLToPath(new URL('../support/webrtc/relay-player.js', import.meta.url));
const RECEIVED = fileURLToPath(new URL('../support/webrtc/whep-player.js', import.meta.url));
const OVENPLAYER = fileURLToPath(import.meta.resolve('ovenplayer/dist/ovenplayer.js'));
const SECRET = 'the relay and Kiln know it';
/** What comes from there comes through the relay. */
const RELAY = '127.0.0.5';

const video = await h264();
const browser = await launchBrowser();
test.after.always(() => browser.close());

async function start(t: ExecutionContext, { peers = '127.0.0.1', secret = SECRET } = {}) {
  const turn = await TurnServer.start(t, { secret: SECRET, peers, address: RELAY });
  const candidates = { tcpRelay: [{ host: RELAY, port: turn.port }], tcpRelaySecret: secret };
  const server = await startWebrtc(t, { candidates });
  const live = new LiveStream(server.registry, [video]);
  t.teardown(() => live.close());
  const page = await browser.newPage();
  t.teardown(() => page.close());
  await page.goto(`${server.url}/page`);
  for (const path of [PLAYER, RECEIVED, OVENPLAYER]) await page.addScriptTag({ path });
  const plays = () =>
    until(
      'the picture moves',
      async () => ((await page.evaluate('received().then(({ frames }) => frames)')) as number) > 20,
    );
  const way = () => page.evaluate('way()') as Promise<object | undefined>;
  return { ...server, turn, page, plays, way };
}

test.serial(
  'viewers that ask for the TURN relay play through it: by WHEP, by OvenPlayer, and on the page of the player',
  async (t) => {
    const { url, port, page, plays, way } = await start(t);
    await page.evaluate(`playRelayed('${url}/app/stream?direction=whep&transport=relay')`);
    await plays();
    t.deepEqual(await until('a way is found', way), { type: 'relay', address: RELAY, protocol: 'tcp' });
    await page.evaluate('connection.close()');

    await page.evaluate(`playOven('ws://127.0.0.1:${port}/app/stream?transport=relay')`);
    await plays();
    t.deepEqual(await until('a way is found', way), { type: 'relay', address: RELAY, protocol: 'tcp' });
    await page.evaluate('player.remove()');

    await addOwn(page, 'WhepPlayer');
    await page.evaluate('relayOnly()');
    await page.evaluate(`playOwn('${url}/app/stream?direction=whep&transport=relay')`);
    await plays();
    t.deepEqual(await until('a way is found', way), { type: 'relay', address: RELAY, protocol: 'tcp' });
    t.is(await page.evaluate('window.failure'), undefined);
  },
);

long('a publisher through the TURN relay is recognized as such', async (t) => {
  const { url, page, registry, way } = await start(t);
  await addOwn(page, 'WhipSession');
  await page.evaluate('relayOnly()');
  await page.evaluate(`publishOwn('${url}/app/cam?direction=whip&transport=relay')`);
  const input = await until('it is live', () => registry.vhost('default').application('app').stream('cam'));
  t.like(input.source.connection?.(), {
    transport: 'TURN',
    protocol: 'UDP',
    localAddress: '127.0.0.1',
    remoteAddress: RELAY,
  });
  t.deepEqual(await until('a way is found', way), { type: 'relay', address: RELAY, protocol: 'tcp' });
});

long('the relay takes what was made with its secret, as long as it holds', async (t) => {
  const { turn, page } = await start(t);
  const allocate = (expiresIn: number, secret: string) => {
    const username = `${Math.round(Date.now() / 1000) + expiresIn}:x`;
    const credential = createHmac('sha1', secret).update(username).digest('base64');
    return page.evaluate(
      `allocate(${JSON.stringify({ urls: `turn:${RELAY}:${turn.port}?transport=tcp`, username, credential })})`,
    );
  };
  t.is(await allocate(60, SECRET), 0);
  t.is(await allocate(-60, SECRET), 401);
  t.is(await allocate(60, 'another'), 401);
});

long('the relay leads to the media of the nodes and nowhere else', async (t) => {
  const { url, page, turn, way } = await start(t, { peers: '127.0.0.2' });
  await page.evaluate(`playRelayed('${url}/app/stream?direction=whep&transport=relay')`);
  await until('it is refused', () => /Forbidden IP/.test(turn.log));
  t.is(await way(), undefined);
});
