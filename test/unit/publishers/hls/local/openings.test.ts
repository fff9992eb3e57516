import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { diskCalls } from '../../../../../src/core/disk-calls.ts';
import { toSavedState } from '../../../../../src/publishers/hls/local/saved-state.ts';
import { StreamFolder } from '../../../../../src/publishers/hls/rewind/stream-folder.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import { feeder } from '../../../../support/hls/llhls-nodes.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const RUN = 'runbefor';
const TRACKS = [videoTrack(), audioTrack()];

/** A server with DVR whose disk does not answer until `answer`; a stream before has left a state. */
async function scene(t: ExecutionContext) {
  virtualTime(t);
  const root = await mkdtemp(join(tmpdir(), 'kiln-dvr-'));
  t.teardown(() => rm(root, { recursive: true }));
  const folder = new StreamFolder(root, { vhost: 'default', app: 'app', stream: 'stream', kind: 'llhls' });
  const progress = { msn: 40, discontinuities: 0, inits: new Map() };
  const facts = { complete: true, at: Date.now(), segmentDuration: 2 };
  await folder.writeState(toSavedState(RUN, progress, facts, []) ?? {});
  // a state without a run is removed
  await folder.run(RUN).write(`init_0_video_${RUN}_llhls.m4s`, [Buffer.from('of the stream before')]);
  await folder.close();
  const dvr = { enable: true, tempStoragePath: root, maxDuration: 600 };
  const server = await openLlhls(t, {
    llhls: { segmentDuration: 2, chunkDuration: 0.5, segmentCount: 10, dvr },
  });
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  for (let call = 0; call < 2; call++) void diskCalls.of(root).take(() => promise);
  t.teardown(answer);
  const live = () => server.publisher.live(server.application, 'stream');
  return { ...server, root, folder, answer, live };
}

test('a stream is packaged when the disk has told how it continues, with what came until then; players wait', async (t) => {
  const { goLive, get, answer, live } = await scene(t);
  const feed = feeder(goLive(TRACKS).output, 30);
  feed(5);
  t.is(live(), undefined);
  const asked = get('/app/stream/llhls.m3u8');
  answer();
  await until('the stream is packaged', live);
  t.is(live()?.stream.run, RUN);
  feed(9);
  const master = await asked;
  t.is(master.statusCode, 200);
  const [, list = ''] = /\n([^#\n]*chunklist_0_[^\n]*)/.exec(master.body) ?? [];
  const { body } = await get(`/app/stream/${list}`);
  const segments = [...body.matchAll(/#EXTINF:([\d.]+),\n.*seg_0_(\d+)_/g)];
  t.is(segments[0]?.[2], '41', body);
  // all but the one that grows
  t.is(
    segments.reduce((sum, [, seconds]) => sum + Number(seconds), 0),
    8,
    body,
  );
});

test('a stream is packaged without its past when the disk hangs', async (t) => {
  const { goLive, get, live, lines } = await scene(t);
  const feed = feeder(goLive(TRACKS).output, 30);
  feed(4);
  await until('the stream is packaged', live);
  t.not(live()?.stream.run, RUN);
  t.true(lines.some(({ reason }) => reason === 'the disk does not answer'));
  feed(9);
  const { body } = await get('/app/stream/llhls.m3u8');
  const [, list = ''] = /\n([^#\n]*chunklist_0_[^\n]*)/.exec(body) ?? [];
  t.regex((await get(`/app/stream/${list}`)).body, /#EXT-X-MEDIA-SEQUENCE:0\n[^]*seg_0_0_[^]*seg_0_3_/);
});

test('a stream does not wait without end for a disk that is busy', async (t) => {
  const { goLive, root, answer, live } = await scene(t);
  let calls = 0;
  const busy = Array.from({ length: 40 }, () => diskCalls.of(root).take(() => (calls++, delay(4000))));
  answer();
  goLive(TRACKS);
  await until('the stream is packaged', live);
  t.not(live()?.stream.run, RUN);
  t.true(calls < busy.length);
  await Promise.all(busy);
});

test('a stream that ends before the disk answers is not packaged', async (t) => {
  const { goLive, publisher, folder, answer, live } = await scene(t);
  const { input } = goLive(TRACKS);
  input.close('the publisher has left');
  answer();
  // the second one begins after that of the stream has ended
  for (let read = 0; read < 2; read++) t.truthy(await folder.readState());
  t.is(live(), undefined);
  await publisher.close();
});
