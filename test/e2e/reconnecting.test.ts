import { readFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import fastify from 'fastify';
import type { Page } from 'playwright-core';
import { Registry } from '../../src/core/registry.ts';
import { pagesRoutes } from '../../src/web/pages.ts';
import { aloneWith } from '../support/cluster/alone.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { addVhost, goLive } from '../support/server/live.ts';
import { long } from '../support/runner/long.ts';
import { until } from '../support/time/until.ts';

const FAKE_PEER = readFileSync(new URL('../support/webrtc/fake-peer.js', import.meta.url), 'utf8');
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** A request for a session, or about one, that waits for its answer. */
interface Asked {
  readonly method: string;
  readonly path: string;
  answer(status: number): void;
}

/**
 * The page of a stream that it plays by WebRTC, as session 1. Each offer is for another session; nothing is answered from
 * then on but by hand.
 */
async function play(t: ExecutionContext) {
  const registry = new Registry();
  addVhost(registry);
  const { live } = await aloneWith(registry);
  const app = fastify({ forceCloseConnections: true });
  await app.register(pagesRoutes({ registry, live, serves: ['webrtc'] }));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, _body, done) => done(null));
  const asked: Asked[] = [];
  let offers = 0;
  for (const url of ['/:app/:stream', '/:app/:stream/:session']) {
    app.route({
      method: ['POST', 'PATCH', 'DELETE'],
      url,
      handler: async ({ method, url: path }, reply) => {
        const location = method === 'POST' ? `/app/news/${++offers}` : undefined;
        const { promise, resolve } = Promise.withResolvers<number>();
        asked.push({ method, path, answer: resolve });
        if (offers === 1 && method === 'POST') resolve(201);
        const status = await promise;
        if (location !== undefined) reply.header('location', location);
        return reply.code(status).send(status === 204 ? undefined : '');
      },
    });
  }
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  const output = goLive(registry, 'app', 'news');
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.addInitScript(FAKE_PEER);
  t.teardown(async () => {
    for (const { answer } of asked) answer(404);
    await page.close();
    await app.close();
  });
  await page.goto(`${origin}/app/news?mode=webrtc`);
  await plays(page);
  await until('media has come', () => page.evaluate<boolean>('peers[0].packets > 1'));
  /** The requests with a method, of those that came by now. */
  const of = (method: string): Asked[] => asked.filter((one) => one.method === method);
  const came = (method: string, count: number): Promise<Asked[]> =>
    until(`${count} of ${method}`, () => of(method).length >= count && of(method));
  const silence = (): Promise<void> => page.evaluate('peers[0].silent = true');
  return { page, output, of, came, silence, errors };
}

const plays = (page: Page): Promise<unknown> =>
  until('it plays', async () => (await page.locator('.cover:visible').count()) === 0);

const heading = (page: Page, text: string): Promise<void> =>
  page.locator('.cover:visible strong', { hasText: text }).waitFor();

/** Keeps the headings that are shown. */
const WATCH = `
  window.headings = ['plays'];
  new MutationObserver(() => {
    const cover = document.querySelector('.cover');
    const text = cover.hidden ? 'plays' : cover.querySelector('strong').textContent;
    if (headings.at(-1) !== text) headings.push(text);
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
`;

test('the player page asks other nodes while its node is silent, plays the first session that it gets, and ends the rest', async (t) => {
  const { page, of, came, silence, errors } = await play(t);
  await page.evaluate(WATCH);
  // what is listed is asked of the same node
  let lists = 0;
  await page.route('**/streams.json*', async (route) => {
    if (++lists % 2 === 0) await route.continue();
  });
  await silence();
  await came('PATCH', 1);
  // nobody says whether the session is there
  const [, second, third] = await came('POST', 3);
  third?.answer(201);
  const [ended] = await came('DELETE', 1);
  t.is(ended?.path, '/app/news/1');
  await plays(page);
  t.true(await page.evaluate('peers[0].closed && !peers[1].closed'));
  // how many it came to depends on how late the answer was
  const offers = of('POST').length;
  second?.answer(201);
  const [, late] = await came('DELETE', 2);
  t.is(late?.path, '/app/news/2');
  t.deepEqual(await page.evaluate('headings'), ['plays', 'Reconnecting', 'plays']);
  t.is(of('POST').length, offers, 'nobody else is asked once it plays');
  t.deepEqual(errors, []);
});

long('a session that its node confirms late is kept, and the spare one is ended', async (t) => {
  const { page, of, came, silence, errors } = await play(t);
  await page.evaluate(WATCH);
  await silence();
  const [patch] = await came('PATCH', 1);
  const [, second] = await came('POST', 2);
  patch?.answer(204);
  await until('the spare session is given up', () => page.evaluate<boolean>('peers[1].closed'));
  second?.answer(201);
  const [ended] = await came('DELETE', 1);
  t.is(ended?.path, '/app/news/2');
  t.is(of('DELETE').length, 1);
  t.false(await page.evaluate('peers[0].closed'));
  t.deepEqual(await page.evaluate('headings'), ['plays']);
  t.deepEqual(errors, []);
});

test('a player that reconnects goes on with that while no node says what is live', async (t) => {
  const { page, came, silence, errors } = await play(t);
  await page.evaluate(WATCH);
  await page.route('**/streams.json*', (route) => route.abort());
  await silence();
  const [patch] = await came('PATCH', 1);
  patch?.answer(404);
  await heading(page, 'The server cannot be reached');
  const offers = await came('POST', 2);
  offers[1]?.answer(201);
  await plays(page);
  t.true(await page.evaluate('!peers[1].closed'));
  await page.unroute('**/streams.json*');
  await page.locator('#about', { hasText: 'watching' }).waitFor();
  const headings = await page.evaluate<string[]>('headings');
  t.is(headings.at(-1), 'plays');
  t.false(headings.includes('Starting'), headings.join());
  t.deepEqual(errors, []);
});

long(
  'a stream without playlists that is gone may be on its way to another node, and has ended when it does not come',
  async (t) => {
    const { page, output, errors } = await play(t);
    await page.evaluate(WATCH);
    output.input.close('the test ends it');
    await heading(page, 'The stream has ended');
    t.deepEqual(await page.evaluate('headings'), ['plays', 'Reconnecting', 'The stream has ended']);
    t.deepEqual(errors, []);
  },
);
