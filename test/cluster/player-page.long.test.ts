import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { loopedScene } from '../support/media/looped-scene.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const scene = await loopedScene();
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** Publishes to a node as soon as that takes it. */
async function publish(t: ExecutionContext, node: Kiln): Promise<void> {
  const publisher = await until('the node takes the stream', () =>
    MediaPublisher.start(node.ports.rtmp, 'live', [scene]).catch((error: Error) => {
      if (/exists|BadName|Denied/i.test(error.message)) return undefined;
      throw error;
    }),
  );
  t.teardown(() => publisher.close());
}

/** When the stream began, as a node tells pages; undefined while it is not live. */
async function since(node: Kiln): Promise<number | undefined> {
  const answer = await fetch(node.httpUrl('/-/streams.json?app=app&stream=live'));
  const { streams } = (await answer.json()) as { streams: readonly { since: number }[] };
  return streams[0]?.since;
}

const covers = (page: Page) => page.locator('.cover:visible');

/** Frames that each of the two players has shown. */
const FRAMES = `[...document.querySelectorAll('video')].map((video) => video.getVideoPlaybackQuality().totalVideoFrames)`;

async function bothPlay(page: Page): Promise<void> {
  await until('both players show the picture', async () => (await covers(page).count()) === 0);
  const before = await page.evaluate<number[]>(FRAMES);
  await until('both pictures move', async () => {
    const now = await page.evaluate<number[]>(FRAMES);
    return now.length === 2 && now.every((count, index) => count > (before[index] ?? 0) + 10);
  });
}

/** Keeps what the page says of the stream, and of its players. */
const WATCH = `
  window.told = [];
  window.states = [];
  const note = (list, text) => text && list.at(-1) !== text && list.push(text);
  new MutationObserver(() => {
    const covers = [...document.querySelectorAll('.cover')];
    note(told, (covers.every(({ hidden }) => hidden) ? 'plays: ' : '') + document.querySelector('#about').textContent);
    note(states, covers.map((cover) => (cover.hidden ? 'plays' : cover.querySelector('strong').textContent)).join(' and '));
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
`;

test('a page plays on when the node of its stream is killed and the publisher comes to another one', async (t) => {
  const redis = await usedRedis(t);
  const options = { llhls: '<SegmentDuration>2</SegmentDuration>', iceAddress: '*' };
  const [a, b] = await Promise.all([startNode(t, redis, 'a', options), startNode(t, redis, 'b', options)]);
  await publish(t, a);
  await until('both nodes tell when it began', async () => {
    const [one, other] = await Promise.all([since(a), since(b)]);
    return one !== undefined && one === other;
  });
  const page = await browser.newPage();
  t.teardown(() => page.close());
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(b.httpUrl('/app/live?mode=both'));
  await bothPlay(page);
  await page.evaluate(WATCH);

  a.signal('SIGKILL');
  await a.exited();
  await page.locator('.cover:visible strong', { hasText: 'Reconnecting' }).first().waitFor();
  await publish(t, b);
  await bothPlay(page);
  await page.locator('#about', { hasText: 'watching' }).waitFor();
  t.is(await covers(page).count(), 0);
  const { told, states } = await page.evaluate<{ told: string[]; states: string[] }>('({ told, states })');
  t.log(states.join(' | '));
  t.false(
    states.some((state) => state.includes('ended')),
    states.join(),
  );
  t.deepEqual(
    told.filter((text) => /^plays: .*\b0 watching/.test(text)),
    [],
  );
  t.deepEqual(errors, []);
});
