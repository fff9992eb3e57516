import test from 'ava';
import { signUrl } from '../../../src/access/policy/sign.ts';
import { indexedTrack } from '../../../src/recording/finished/entry.ts';
import { askedByHand, notedSessions } from '../../support/access/access.ts';
import { placedTracks } from '../../support/media/mp4-samples.ts';
import { audioTrack, AVC_HIGH, videoTrack } from '../../support/media/packets.ts';
import { until } from '../../support/time/until.ts';
import { openPlayback } from '../../support/playback/recorded.ts';

const LIST = '/app/stream/list';
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 's',
  algorithm: 'sha1',
} as const;

const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });

test('the times are listed of which a stream has recordings', async (t) => {
  const { get, record } = await openPlayback(t);
  for (const second of [0, 1, 10]) await record(second);
  await record(2, { pathBelow: '2.ts' });
  await record(3, { stream: 'other' });
  await record(4, { app: 'off' });
  await record(5, { pathBelow: '5.webm' });
  await record(6, { pathBelow: '6.ts', tracks: [{ type: 'audio', codec: 'AC3' }] });
  const answer = await get(LIST);
  t.is(answer.statusCode, 200);
  t.is(answer.headers['content-type'], 'application/json;charset=UTF-8');
  t.is(answer.headers['cache-control'], 'no-cache, no-store');
  t.deepEqual(answer.json(), [
    {
      start: '2026-03-05T12:00:00.000Z',
      duration: 3,
      url: 'http://localhost:80/app/stream/get?start=2026-03-05T12%3A00%3A00.000Z&duration=3',
    },
    {
      start: '2026-03-05T12:00:10.000Z',
      duration: 1,
      url: 'http://localhost:80/app/stream/get?start=2026-03-05T12%3A00%3A10.000Z&duration=1',
    },
  ]);
});

test('a time ends where the clip of it does, at a change of format', async (t) => {
  const { get, recordMp4 } = await openPlayback(t);
  const other = videoTrack({ config: AVC_HIGH });
  for (const [index, video] of [videoTrack(), other, other].entries())
    await recordMp4(2 * index, 2, { tracks: [video, audioTrack()].map(indexedTrack) }, 100, video);
  const listed = (await get(LIST)).json<{ duration: number; url: string }[]>();
  t.deepEqual(
    listed.map(({ duration }) => duration),
    [2, 4],
  );
  for (const { duration, url } of listed) {
    const { pathname, search } = new URL(url);
    const [track] = placedTracks((await get(pathname + search)).rawPayload);
    t.is(track?.samples.length, duration * 30);
  }
});

test('the times are cut to what was asked for', async (t) => {
  const { get, record } = await openPlayback(t);
  for (const second of [0, 1, 2, 10]) await record(second);
  const spans = async (query: string) =>
    (await get(`${LIST}?${query}`))
      .json<{ start: string; duration: number }[]>()
      .map(({ start, duration }) => [start.slice(17, -1), duration]);
  t.deepEqual(await spans('start=2026-03-05T12:00:01.5Z'), [
    ['01.500', 1.5],
    ['10.000', 1],
  ]);
  t.deepEqual(await spans('end=2026-03-05T12:00:01.5Z'), [['00.000', 1.5]]);
  t.deepEqual(await spans('start=2026-03-05T13:00:01%2B01:00&end=2026-03-05T12:00:10.25Z'), [
    ['01.000', 2],
    ['10.000', 0.25],
  ]);
  t.deepEqual(
    (await get(`${LIST}?start=2026-03-05T12:00:04Z&end=2026-03-05T12:00:09Z`)).json(),
    error(404, 'There is no recording of this time'),
  );
});

test('a stream of which there is no recording has no list', async (t) => {
  const { get } = await openPlayback(t);
  const answer = await get(LIST);
  t.is(answer.statusCode, 404);
  t.deepEqual(answer.json(), error(404, 'There is no recording of this time'));
});

test('where there are only recordings that are not played, the answer names why', async (t) => {
  const { get, record } = await openPlayback(t);
  await record(5, { pathBelow: '5.webm' });
  await record(6, { pathBelow: '6.ts', tracks: [{ type: 'audio', codec: 'AC3' }] });
  const span = 'start=2026-03-05T12:00:05Z&duration=1';
  for (const path of [LIST, `/app/stream/get?${span}`, `/app/stream/recorded.m3u8?${span}`]) {
    const answer = await get(path);
    t.is(answer.statusCode, 404, path);
    t.regex(
      answer.json<{ message: string }>().message,
      path === LIST ? /not played: .*WebM.*; .*MPEG-TS without a codec/ : /not played: a recording as WebM/,
      path,
    );
  }
  await record(7);
  t.is((await get(LIST)).statusCode, 200);
  const none = await get(`${LIST}?start=2026-03-05T13:00:00Z`);
  t.deepEqual(none.json(), error(404, 'There is no recording of this time'));
});

test('a malformed query is refused with JSON', async (t) => {
  const { get } = await openPlayback(t);
  for (const query of ['start=x', 'end=%ff', 'start=2026-03-05', `x=${'y'.repeat(5000)}`, 'end=1&end=2']) {
    const answer = await get(`${LIST}?${query}`);
    t.is(answer.statusCode, 400, query);
    t.regex(answer.json<{ message: string }>().message, /^\[HTTP\] Invalid query: .* \(400\)$/);
  }
});

test('an application without Playback has nothing there', async (t) => {
  const { get, record } = await openPlayback(t);
  await record(0, { app: 'off' });
  for (const path of ['/off/stream/list', '/nothing/stream/list'])
    for (const method of ['GET', 'HEAD', 'OPTIONS'] as const) {
      const [answer, other] = [await get(path, {}, method), await get(`${path}s`, {}, method)];
      t.deepEqual([answer.statusCode, answer.body], [other.statusCode, other.body], `${method} ${path}`);
      t.is(answer.statusCode, 404);
    }
  t.is((await get(LIST, { host: 'elsewhere.example' })).statusCode, 404);
});

test('pages of other domains may read it as the application says', async (t) => {
  const origin = 'https://site.example';
  const allowed = async (setup: Parameters<typeof openPlayback>[1], method: 'GET' | 'OPTIONS' = 'GET') =>
    (await (await openPlayback(t, setup)).get(LIST, { origin }, method)).headers['access-control-allow-origin'];
  t.is(await allowed({}), undefined);
  t.is(await allowed({ crossDomains: { url: ['*'], header: [] } }), '*');
  t.is(await allowed({ llhls: { crossDomains: { url: [origin] } } }), origin);
  t.is(await allowed({ llhls: { crossDomains: { url: [origin] } } }, 'OPTIONS'), origin);
  t.is(
    await allowed({
      playback: { crossDomains: { url: ['https://other.example'] } },
      llhls: { crossDomains: { url: ['*'] } },
    }),
    undefined,
  );
});

test('a signed policy covers the time', async (t) => {
  const signedPolicy = { ...SIGNING, enables: { publishers: 'playback' } };
  const { get, record } = await openPlayback(t, { vhost: { signedPolicy } });
  await record(0);
  const url = 'http://localhost:80/app/stream/list?start=2026-03-05T12:00:00Z';
  const signed = signUrl(url, { url_expire: Date.now() + 60_000 }, SIGNING);
  const path = (of: string) => of.slice('http://localhost:80'.length);
  const refused = await get(path(url), { host: 'localhost:80' });
  t.is(refused.statusCode, 401);
  t.deepEqual(refused.json(), error(401, 'Access denied'));
  t.is((await get(path(signed), { host: 'localhost:80' })).statusCode, 200);
  t.is((await get(path(signed).replace('12:00:00', '11:00:00'), { host: 'localhost:80' })).statusCode, 401);
});

test('a control server is asked, and told when the list was sent', async (t) => {
  const ends: string[] = [];
  const { guard, questions } = askedByHand();
  const { get, record, registry } = await openPlayback(t, {
    admitting: { guards: [guard], webhookSessions: notedSessions(ends) },
  });
  await record(0);
  const answered = get(LIST);
  while (questions.length === 0) await new Promise((resolve) => setImmediate(resolve));
  questions[0]?.admit();
  t.is((await answered).statusCode, 200);
  t.deepEqual(ends, ['the list was sent']);
  const { counters } = registry.vhost('default').application('app');
  t.deepEqual([counters.publishers.playback, counters.publishersSoFar.playback], [0, 1]);
  t.true(counters.out.totalBytes > 0);
});

test('MaxConnection of Playback limits requests at a time', async (t) => {
  const { get, record, registry } = await openPlayback(t, { playback: { maxConnection: 1 } });
  await record(0);
  const leave = registry.vhost('default').application('app').counters.viewer('playback');
  const busy = await get(LIST);
  t.is(busy.statusCode, 503);
  t.is(busy.headers['retry-after'], '1');
  leave();
  t.is((await get(LIST)).statusCode, 200);
});

test('lists and master playlists are refused while too many search for recordings', async (t) => {
  const { get, recordMp4, recordings } = await openPlayback(t);
  await recordMp4(0, 5);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const page = recordings.page.bind(recordings);
  let searches = 0;
  recordings.page = async (...asked) => {
    searches++;
    await held;
    return await page(...asked);
  };
  // each clip is another, so that each is searched for
  const master = (clip: number): string =>
    `/app/stream/recorded.m3u8?start=2026-03-05T12:00:00Z&duration=${1 + clip / 10}`;
  const asked = Array.from({ length: 16 }, (_, index) => get(index % 2 === 0 ? LIST : master(index)));
  await until('all search', () => searches === asked.length);
  for (const url of [LIST, master(20)]) {
    const busy = await get(url);
    t.is(busy.statusCode, 503, url);
    t.is(busy.headers['retry-after'], '1');
  }
  release();
  for (const answer of await Promise.all(asked)) t.is(answer.statusCode, 200);
  t.is((await get(LIST)).statusCode, 200);
});
