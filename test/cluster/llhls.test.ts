import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { loopedScene } from '../support/media/looped-scene.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { LlhlsPlayer, parseChunklist } from '../support/load/llhls-player.ts';
import { long } from '../support/runner/long.ts';
import { publishScene } from '../support/media/publish-scene.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const { resolve } = createRequire(import.meta.url);
const SCRIPTS = [
  resolve('hls.js/dist/hls.min.js'),
  resolve('ovenplayer/dist/ovenplayer.js'),
  `${import.meta.dirname}/../support/hls/hls-player.js`,
];
const LLHLS = '<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>';
const MASTER = '/app/live/llhls.m3u8';
const SESSIONS = '/v1/vhosts/default/apps/app/streams/live/sessions';
const WITHIN = { timeout: PATIENCE_MS };

const scene = await loopedScene();
const browser = await launchBrowser();
test.after.always(() => browser.close());

type Nodes = readonly [a: Kiln, b: Kiln, c: Kiln];

async function startNodes(t: ExecutionContext, llhls = LLHLS): Promise<Nodes> {
  const redis = await usedRedis(t);
  const start = (id: string): Promise<Kiln> => startNode(t, redis, id, { llhls });
  return Promise.all([start('a'), start('b'), start('c')]);
}

const master = (node: Kiln, query = '') =>
  until(`${node.ports.http} plays`, async () => {
    const answer = await fetch(node.httpUrl(MASTER + query));
    return answer.status === 200 && answer.text();
  });

/** Paths of the chunklists that a node names: of the sound, and of the picture. */
async function chunklists(node: Kiln, query = ''): Promise<readonly [string, string]> {
  const [sound, picture] = urisOf(await master(node, query), MASTER);
  if (sound === undefined || picture === undefined) throw new Error('no chunklists');
  return [sound, picture];
}

/** A page that plays from a node, by hls.js alone or under OvenPlayer. */
async function play(t: ExecutionContext, node: Kiln, by: 'playHls' | 'playOven' = 'playHls'): Promise<Page> {
  const page = await browser.newPage();
  t.teardown(() => page.close());
  // a player that comes with the stream has too little to hold back from the edge
  await until('three segments', async () => {
    const [, picture] = await chunklists(node);
    return (await (await fetch(node.httpUrl(picture))).text()).split('#EXTINF').length > 3;
  });
  await page.goto(node.httpUrl('/livez'));
  for (const path of SCRIPTS) await page.addScriptTag({ content: readFileSync(path, 'utf8') });
  await page.evaluate(
    `document.body.appendChild(Object.assign(document.createElement('div'), { id: 'player' })); ${by}('${node.httpUrl(MASTER)}')`,
  );
  await page.waitForFunction('shows(160)', undefined, WITHIN);
  await page.addScriptTag({ content: SCRIPT });
  return page;
}

/**
 * In pages of hls.js: how many discontinuities are in front of what is shown, whether it goes on behind one more, and whether
 * it has all complete segments, while nothing of the next one is there.
 */
const SCRIPT = `
  const video = document.querySelector('video');
  window.isFirst = () => document.querySelector('video') === video && document.querySelectorAll('video').length === 1;
  const details = () => hls.levels[hls.currentLevel]?.details;
  window.misses = () => details()?.misses ?? 0;
  const shown = () => details()?.fragments.findLast(({ start }) => start <= video.currentTime)?.cc;
  let before = shown() ?? 0;
  let behind;
  window.next = () => [before, behind] = [shown() ?? 0, undefined];
  window.hasAll = () => {
    const { fragmentEnd, partList, endSN } = details();
    const { buffered } = video;
    return partList.at(-1).fragment.sn === endSN && buffered.end(buffered.length - 1) > fragmentEnd - 0.1;
  };
  window.goesOn = () => {
    if (shown() > before) behind ??= video.currentTime;
    return video.currentTime > behind + 3;
  };
`;

/** The same element shows what came behind the discontinuity, and goes on. */
async function goesOn(t: ExecutionContext, page: Page): Promise<void> {
  await page.waitForFunction('goesOn()', undefined, WITHIN);
  t.true(await page.evaluate('isFirst()'));
  t.deepEqual(await page.evaluate('faults.filter((fault) => / true /.test(fault))'), []);
  await page.evaluate('next()');
}

/** It has been told again and again that nothing is new. */
const waitsInVain = (page: Page) => page.waitForFunction('misses() > 3', undefined, WITHIN);

test.serial(
  'published to one node, played from the others: by hls.js, by a player of parts, and every file the same',
  async (t) => {
    const nodes = await startNodes(t);
    const [a, b, c] = nodes;
    await publishScene(t, a, scene);
    const page = await play(t, b);
    const player = await LlhlsPlayer.start({ port: c.ports.http, master: MASTER, hints: true });
    t.teardown(() => player.close());
    await until('parts come', () => player.requests > 40);
    t.deepEqual(player.failures, []);
    const event = { eventFormat: 'id3v2', events: [{ frameType: 'TIT2', data: 'On air' }] };
    const bytesOf = (path: string) =>
      Promise.all(nodes.map(async (node) => Buffer.from(await (await fetch(node.httpUrl(path))).arrayBuffer())));
    for (const path of await chunklists(c)) {
      t.is((await c.api('/v1/vhosts/default/apps/app/streams/live:sendEvent', 'POST', event)).status, 200);
      const { msn } = parseChunklist(await (await fetch(a.httpUrl(path))).text());
      // no more than the next segment but one may be asked for
      t.is((await fetch(a.httpUrl(`${path}?_HLS_msn=${msn + 1}`))).status, 200);
      // between two answers the next part may come
      const own = await until('all nodes tell the same', async () => {
        // one segment more would be refused where the growing one has no part yet
        const [first, ...others] = (await bytesOf(`${path}?_HLS_msn=${msn + 1}`)).map(String);
        return first?.startsWith('#EXTM3U') && others.every((other) => other === first) && first;
      });
      t.regex(own, /^#EXTM3U/);
      let events = 0;
      for (const [, name = ''] of own.matchAll(/^(seg_.*)$/gm)) {
        const [first, ...rest] = await bytesOf(`${path.slice(0, path.lastIndexOf('/'))}/${name}`);
        t.true((first?.length ?? 0) > 0);
        for (const body of rest) t.deepEqual(body, first);
        if (first?.includes('emsg') && first.includes('On air')) events++;
      }
      t.true(events > 0, path);
    }
    t.deepEqual(await page.evaluate('faults'), []);
    // hls.js plays faster only when it is little behind, and a busy machine may have cost it more
    await page.evaluate('hls.config.liveMaxLatencyDuration = 4');
    await page.waitForFunction('hls.latency < 5', undefined, WITHIN);
  },
);

long('one player on all nodes is one session; a kicked one is kicked everywhere', async (t) => {
  // a player that is silent for three segments has gone
  const nodes = await startNodes(t, '<SegmentDuration>5</SegmentDuration><ChunkDuration>0.5</ChunkDuration>');
  const [a, b, c] = nodes;
  await publishScene(t, a, scene);
  const [, picture] = await chunklists(b, '?session=bounced');
  const [, staying] = await chunklists(c, '?session=staying');
  const status = async (node: Kiln, path: string) => (await fetch(node.httpUrl(path))).status;
  for (let round = 0; round < 3; round++) {
    for (const node of nodes) for (const path of [picture, staying]) t.is(await status(node, path), 200);
  }
  const list = async (node: Kiln) => (await node.api<string[]>(SESSIONS)).body.response.toSorted();
  for (const node of nodes) t.deepEqual(await list(node), ['bounced', 'staying']);
  t.is((await c.api(`${SESSIONS}/bounced`, 'DELETE')).status, 200);
  for (const node of nodes) {
    await until('it is refused', async () => (await status(node, picture)) === 401);
    t.is((await fetch(node.httpUrl(`${MASTER}?session=bounced`))).status, 401);
    t.is(await status(node, staying), 200);
    t.deepEqual(await list(node), ['staying']);
  }
});

long('a publisher that comes back to the same node, or to another: hls.js plays on', async (t) => {
  const [a, b, c] = await startNodes(t);
  const first = await publishScene(t, a, scene);
  const pages = [await play(t, b), await play(t, a)];
  first.client.socket.destroy();
  for (const page of pages) await waitsInVain(page);
  const second = await publishScene(t, a, scene);
  for (const page of pages) await goesOn(t, page);
  second.client.socket.destroy();
  for (const page of pages) await waitsInVain(page);
  await publishScene(t, c, scene);
  for (const page of pages) await goesOn(t, page);
});

test.serial(
  'the process that has a stream is killed, its publisher goes to another node: hls.js plays on',
  async (t) => {
    const [a, b, c] = await startNodes(t);
    await publishScene(t, a, scene);
    const pages = [await play(t, b), await play(t, b, 'playOven')] as const;
    const [, before] = await chunklists(b);
    // what hls.js then has ends right in front of what nobody knows
    await pages[0].waitForFunction('hasAll()', undefined, WITHIN);
    a.signal('SIGKILL');
    await a.exited();
    t.is((await fetch(b.httpUrl(before))).status, 200, 'what is known is told while nobody has the stream');
    t.is((await fetch(b.httpUrl(MASTER))).status, 200);
    for (const page of pages) await waitsInVain(page);
    await publishScene(t, c, scene);
    for (const page of pages) await goesOn(t, page);
    t.is((await fetch(c.httpUrl(before))).status, 200);
  },
);

long('players elsewhere of a stream whose process is suspended are answered before they give up', async (t) => {
  const [a, b, c] = await startNodes(t);
  await publishScene(t, a, scene);
  const [, picture] = await chunklists(b);
  const get = (query = '') => fetch(b.httpUrl(picture + query), { signal: AbortSignal.timeout(10_000) });
  const { msn } = parseChunklist(await (await get()).text());
  a.signal('SIGSTOP');
  t.teardown(() => a.signal('SIGCONT'));
  for (let request = 0; request < 5; request++) {
    for (const { status } of await Promise.all([get(), get(`?_HLS_msn=${msn + 1}`)])) t.is(status, 200);
  }
  await publishScene(t, c, scene);
  await until('it goes on', async () => (await (await get()).text()).includes('#EXT-X-DISCONTINUITY\n'));
});
