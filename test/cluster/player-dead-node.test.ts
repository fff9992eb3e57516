import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { loopedScene } from '../support/media/looped-scene.ts';
import { startBalancer } from '../support/network/balancer.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { nodesOf, startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const OVENPLAYER = fileURLToPath(import.meta.resolve('ovenplayer/dist/ovenplayer.js'));
const scene = await loopedScene();
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** Keeps when frames were shown, by the page's clock, whichever video element shows them. */
const WATCH = `
  window.shown = [];
  const known = new WeakSet();
  setInterval(() => {
    const video = document.querySelector('video');
    if (video === null || known.has(video)) return;
    known.add(video);
    const note = () => video.requestVideoFrameCallback(() => { shown.push(performance.now()); note(); });
    note();
  }, 20);
`;

/** Milliseconds of the longest time without a frame since a moment by the page's clock. */
const longestGap = (page: Page, since: number): Promise<number> =>
  page.evaluate<number>(
    `Math.round([${since}, ...shown.filter((at) => at > ${since})].reduce(([gap, last], at) => [Math.max(gap, at - last), at], [0, ${since}])[0])`,
  );

const shown = (page: Page): Promise<number> => page.evaluate<number>('shown.length');

/** Three nodes behind a balancer, and a stream of the first one. */
async function cluster(t: ExecutionContext) {
  const redis = await usedRedis(t);
  const start = (id: string): Promise<Kiln> => startNode(t, redis, id, { iceAddress: '*' });
  const nodes = (await Promise.all(['a', 'b', 'c'].map(start))) as [Kiln, Kiln, Kiln];
  const [owner, ...others] = nodes;
  const { http } = await startBalancer(t, nodes, true);
  const publisher = await MediaPublisher.start(owner.ports.rtmp, 'live', [scene]);
  t.teardown(() => publisher.close());
  await Promise.all(nodes.map((node) => node.liveStream('live')));
  const page = await browser.newPage();
  t.teardown(() => page.close());
  return { owner, others, host: `127.0.0.1:${http}`, publisher, page };
}

const plays = (page: Page): Promise<boolean> => until('it plays', async () => (await shown(page)) > 15);

/** The player page, which plays from another node than the one that has the stream. */
async function start(t: ExecutionContext) {
  const { owner, others, host, publisher, page } = await cluster(t);
  const locations: string[] = [];
  page.on('response', (response) => {
    const { location } = response.headers();
    if (response.status() === 201 && location !== undefined) locations.push(location);
  });
  const incarnations = new Map([...(await nodesOf(owner))].map(([id, { incarnation }]) => [incarnation, id]));
  /** The node of the page's newest session. */
  const server = (): string | undefined => incarnations.get(/\.([^.?]+)\?/.exec(locations.at(-1) ?? '')?.[1] ?? '');
  const elsewhere = await until('another node than the owner serves the page', async () => {
    await page.goto(`http://${host}/app/live?mode=webrtc`);
    await page.evaluate(WATCH);
    await plays(page);
    return others[['b', 'c'].indexOf(server() ?? '')];
  });
  return { page, elsewhere, server, locations, publisher };
}

for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
  (signal === 'SIGKILL' ? test.serial : long)(
    `a WebRTC viewer plays on from another node when the one that serves it has got ${signal}`,
    async (t) => {
      const { page, elsewhere, server, locations } = await start(t);
      const first = server();
      const before = locations.length;
      const went = await page.evaluate<number>('performance.now()');
      t.teardown(() => elsewhere.signal('SIGCONT'));
      elsewhere.signal(signal);
      await until('another node serves it', () => locations.length > before && server() !== first);
      const seen = await shown(page);
      await until('the picture moves', async () => (await shown(page)) > seen + 20);
      t.log(
        `without a picture for ${await longestGap(page, went)} ms, after ${locations.length - before} new sessions`,
      );
      t.not(server(), first);
    },
  );
}

long('a WebRTC viewer stays where it is while the publisher pauses, however often', async (t) => {
  const { page, publisher, locations } = await start(t);
  let asked = 0;
  page.on('response', (response) => {
    if (response.request().method() === 'PATCH' && response.ok()) asked++;
  });
  const before = locations.length;
  for (let round = 1; round <= 3; round++) {
    publisher.client.socket.cork();
    const from = performance.now();
    await until('the page has asked', () => asked >= 1 && performance.now() - from > 2500);
    publisher.client.socket.uncork();
    const seen = await shown(page);
    await until('the picture moves', async () => (await shown(page)) > seen + 20);
  }
  t.is(locations.length, before);
});

long('a WebRTC viewer whose node stops plays on from another one', async (t) => {
  const { page, elsewhere, server, locations } = await start(t);
  const first = server();
  const went = await page.evaluate<number>('performance.now()');
  elsewhere.signal('SIGINT');
  await until('another node serves it', () => server() !== first);
  const seen = await shown(page);
  await until('the picture moves', async () => (await shown(page)) > seen + 20);
  t.log(`without a picture for ${await longestGap(page, went)} ms`);
  t.true(locations.length > 1);
});

long('OvenPlayer with the settings of docs/play.md plays on from another node when its own is killed', async (t) => {
  const readme = await readFile(new URL('../../docs/play.md', import.meta.url), 'utf8');
  const script = /```js\n(const player = OvenPlayer[^`]*)```/.exec(readme)?.[1] ?? '';
  const { owner, others, host, page } = await cluster(t);
  let attempt = 0;
  const elsewhere = await until('another node than the owner serves the page', async () => {
    // a page may take as many requests as there are nodes
    for (let n = attempt++ % 3; n > 0; n--) await fetch(`http://${host}/-/streams.json`);
    // what has no policy for scripts
    await page.goto(`http://${host}/-/streams.json`);
    await page.addScriptTag({ path: OVENPLAYER });
    await page.evaluate(WATCH);
    await page.evaluate(`document.body.innerHTML = '<div id="player"></div>';
      ${script.replace('localhost:3333/app/mystream', `${host}/app/live`)}`);
    await plays(page);
    const rows = await until('its session is counted', async () => {
      const all = [...(await nodesOf(owner))].filter(([, { sessions }]) => sessions > 0);
      return all.length === 1 && all;
    });
    return others[['b', 'c'].indexOf(rows[0]?.[0] ?? '')];
  });
  const went = await page.evaluate<number>('performance.now()');
  elsewhere.signal('SIGKILL');
  await elsewhere.exited();
  const seen = await shown(page);
  await until('the picture moves', async () => (await shown(page)) > seen + 40);
  t.log(`without a picture for ${await longestGap(page, went)} ms`);
  t.false(elsewhere.running);
});
