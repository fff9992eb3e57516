import test from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';
const nodes = sharedNodes(['a', 'b', 'c'], {
  llhls: '<ChunkDuration>0.25</ChunkDuration><SegmentDuration>1</SegmentDuration>',
  application: '<Standby><Enable>true</Enable></Standby>',
});

/** Log lines of an event, of all nodes. */
const lines = (all: readonly Kiln[], event: string): number =>
  all.reduce((count, { log }) => count + log.split(`"${event}"`).length - 1, 0);

async function playlist(node: Kiln, name: string): Promise<string> {
  return await until('the master playlist', async () => {
    const answer = await fetch(node.httpUrl(`/app/${name}/llhls.m3u8`));
    return answer.ok && answer.text();
  });
}

test.serial('a slate gives way to a publisher on another node, and is shown there when that leaves', async (t) => {
  const [a, b, c] = nodes();
  const first = publishPattern(a.rtmpUrl('moves'));
  t.teardown(() => first.stop());
  await a.liveStream('moves');
  await playlist(c, 'moves');
  await first.stop();
  await until('a shows a slate', () => lines([a], 'standby.began') === 1);
  const second = publishPattern(b.rtmpUrl('moves'));
  t.teardown(() => second.stop());
  await until('b has the stream', async () => {
    const { body } = await b.api<{ node?: string }>(`${STREAMS}/moves`);
    return body.statusCode === 200 && second.running && lines([b], 'stream.published') === 1;
  });
  await playlist(c, 'moves');
  await second.stop();
  await until('b shows a slate', () => lines([b], 'standby.began') === 1);
  t.is((await c.stream('moves')).body.response.input.sourceType, 'Rtmp');
  t.is((await c.api(`${STREAMS}/moves`, 'DELETE')).status, 200);
  await until('it has ended', async () => (await c.stream('moves')).status === 404);
});

test.serial('a stream that a task asks for is there before its first publisher, and ends with the task', async (t) => {
  const all = nodes();
  const [a, b] = all;
  const name = 'asked';
  t.is((await a.api(`${STREAMS}/${name}:startStandby`, 'POST', { text: 'soon' })).status, 200);
  const { input } = await b.liveStream(name);
  t.is(input.sourceType, 'Unknown');
  const publisher = publishPattern(b.rtmpUrl(name));
  t.teardown(() => publisher.stop());
  await until('it is shown', async () => (await a.stream(name)).body.response?.input.sourceType === 'Rtmp');
  await publisher.stop();
  await until('it stays', async () => {
    const { status, body } = await a.stream(name);
    return status === 200 && body.response.input.connection === undefined;
  });
  t.is((await b.api(`${STREAMS}/${name}:stopStandby`, 'POST')).status, 200);
  await until('it has ended', async () => (await a.stream(name)).status === 404);
});

test.serial('another node shows the slate of a stream whose owner has died', async (t) => {
  const [a, b, c] = nodes();
  const publisher = publishPattern(a.rtmpUrl('dies'));
  t.teardown(() => publisher.stop());
  await a.liveStream('dies');
  const before = lines([b, c], 'standby.began');
  a.signal('SIGKILL');
  await a.exited();
  await until('another one shows the slate', () => lines([b, c], 'standby.began') > before);
  const { input } = await b.liveStream('dies');
  t.is(input.sourceType, 'Rtmp');
  await playlist(c, 'dies');
  const next = publishPattern(c.rtmpUrl('dies'));
  t.teardown(() => next.stop());
  await until('it is shown', async () => (await b.stream('dies')).body.response?.input.connection !== undefined);
});
