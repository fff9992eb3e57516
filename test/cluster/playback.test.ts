import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { checkMasterPlaylist } from '../support/playlist-rules/master-rules.ts';
import { checkMediaPlaylist } from '../support/playlist-rules/media-rules.ts';
import { placedTracks } from '../support/media/mp4-samples.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { h264 } from '../support/rtmp/flv-media.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { until } from '../support/time/until.ts';

const APP = '/v1/vhosts/default/apps/app';
const RECORDS = await mkdtemp(join(tmpdir(), 'kiln-playback-'));
test.after.always(() => rm(RECORDS, { recursive: true, force: true }));

const nodes = sharedNodes(['a', 'b', 'c'], {
  publishers: `<FILE><RootPath>${RECORDS}</RootPath></FILE><Playback/>`,
});

interface Span {
  readonly start: string;
  readonly duration: number;
  readonly url: string;
}

/** Records some seconds of a stream that a node gets. @param extension of the file */
async function record(node: Kiln, id: string, extension: string): Promise<void> {
  const client = await RtmpClient.publish('s', { port: node.ports.rtmp, app: 'app' });
  const { config, frames } = h264();
  client.metadata({ videocodecid: 7, width: 640, height: 360 });
  const spec = { id, stream: { name: 's' }, filePath: `${id}.${extension}`, infoPath: `${id}.xml` };
  const started = await node.api(`${APP}:startRecord`, 'POST', spec);
  if (started.status !== 200) throw new Error(`status ${started.status}`);
  client.video(config, 0);
  let at = 0;
  const sending = setInterval(() => frames.slice(0, 5).forEach((frame) => client.video(frame, at++ * 40)), 200);
  try {
    await until('it is recorded', async () => {
      const { body } = await node.api<{ id: string; recordTime?: number }[]>(`${APP}:records`);
      return body.response.some(({ id: known, recordTime = 0 }) => known === id && recordTime > 3000);
    });
    await node.api(`${APP}:stopRecord`, 'POST', { id });
  } finally {
    clearInterval(sending);
    client.close();
  }
  await until('the stream is over', async () => (await node.api(`${APP}/streams/s`)).status === 404);
}

/** What all nodes have: one that is busy may not answer in time. */
const spansOf = (node: Kiln, count: number) =>
  until(`${count} spans at ${node.ports.http}`, async () => {
    const answer = await fetch(node.httpUrl('/app/s/list'));
    const spans = answer.status === 200 ? ((await answer.json()) as Span[]) : [];
    return spans.length === count && spans;
  });

async function bytesOf(url: string, headers: Record<string, string> = {}): Promise<Buffer> {
  return await until(url, async () => {
    const answer = await fetch(url, { headers });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return answer.ok && bytes;
  });
}

test.serial('any node plays the recordings of all nodes, to the same bytes', async (t) => {
  const [a, b, c] = nodes();
  await record(a, 'one', 'mp4');
  const [only] = (await spansOf(a, 1)) as [Span];
  const end = Date.parse(only.start) + only.duration * 1000;
  await until('what follows is apart', () => Date.now() > end + 2500);
  await record(b, 'two', 'ts');
  const spans = await spansOf(c, 2);
  const shown = (list: readonly Span[]) => list.map(({ start, duration }) => [start, duration]);
  for (const node of [a, b]) t.deepEqual(shown(await spansOf(node, 2)), shown(spans));
  for (const { url } of spans) {
    const { pathname, search } = new URL(url);
    const whole = await bytesOf(`${url}&format=mp4`);
    t.true((placedTracks(whole)[0]?.samples.length ?? 0) >= 60);
    for (const node of [a, b, c]) {
      const own = node.httpUrl(`${pathname}${search}`);
      t.true((await bytesOf(`${own}&format=mp4`)).equals(whole), own);
      t.deepEqual(await bytesOf(`${own}&format=mp4`, { range: 'bytes=100-299' }), whole.subarray(100, 300));
      t.true((await bytesOf(own)).length > whole.length / 2);
    }
  }
  const [first, second] = spans as [Span, Span];
  const duration = (Date.parse(second.start) - Date.parse(first.start)) / 1000 + second.duration;
  const path = `/app/s/recorded.m3u8?start=${first.start}&duration=${duration}`;
  const master = (await bytesOf(c.httpUrl(path))).toString();
  t.deepEqual(checkMasterPlaylist(master), []);
  const [list = ''] = urisOf(master, c.httpUrl(path));
  const text = (await bytesOf(list)).toString();
  t.deepEqual(checkMediaPlaylist(text), []);
  t.is(text.split('#EXT-X-DISCONTINUITY\n').length, 2);
  for (const uri of urisOf(text, list)) {
    const bytes = await bytesOf(uri);
    for (const node of [a, b]) {
      const { pathname } = new URL(uri);
      t.true((await bytesOf(node.httpUrl(pathname))).equals(bytes), pathname);
    }
  }
  await until('the player is counted once, and who fetched clips from other nodes no longer', async () => {
    const answer = await c.api<{ connections: { playback: number } }>(`/v1/stats/current/vhosts/default/apps/app`);
    return answer.body.response.connections.playback === 1;
  });
});

test.serial('a node that is gone leaves the recordings of the others', async (t) => {
  const [, b, c] = nodes();
  const before = await spansOf(c, 2);
  await b.stop();
  const spans = await until('those of the first node alone', async () => {
    const answer = await fetch(c.httpUrl('/app/s/list'));
    const found = answer.status === 200 ? ((await answer.json()) as Span[]) : [];
    return found.length === 1 && found;
  });
  t.is(spans[0]?.start, before[0]?.start);
  t.true((await bytesOf(`${spans[0]?.url}&format=mp4`)).length > 0);
  const lost = new URL(before[1]?.url ?? '');
  const { status } = await until('a node that is lost is not asked', async () => {
    const answer = await fetch(c.httpUrl(lost.pathname + lost.search));
    return answer.status !== 503 && answer;
  });
  t.is(status, 404);
});
