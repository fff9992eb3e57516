import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { patternArguments, publishPattern } from '../support/media/ffmpeg.ts';
import { encodeFlv } from '../support/rtmp/flv-file.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const SECONDS = 4;
/** Of what is published as `live`, which is held up in the middle until its dump has begun. */
const MIDDLE_MS = 2000;
const LLHLS = '<SegmentDuration>1</SegmentDuration><ChunkDuration>0.5</ChunkDuration><SegmentCount>10</SegmentCount>';
const STREAM = '/v1/vhosts/default/apps/app/streams/live';
const run = promisify(execFile);

/** Decodes all of a playlist. @returns frames of the video @throws when anything is wrong with it */
async function decode(t: ExecutionContext, master: string): Promise<number> {
  const input = ['-allowed_extensions', 'ALL', '-i', master];
  const { stderr } = await run('ffmpeg', ['-v', 'warning', '-xerror', ...input, '-f', 'null', '-']);
  t.is(stderr, '');
  const { stdout } = await run('ffprobe', [
    ...['-v', 'error', '-select_streams', 'v', '-count_frames', '-show_entries', 'stream=nb_read_frames'],
    ...['-of', 'csv=p=0', ...input],
  ]);
  return Number(stdout.split('\n', 1)[0]);
}

test.serial('a dump of HLS decodes without errors and has every frame, also when the server is killed', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'kiln-dump-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const dump = `<Dump><TargetStreamName>auto</TargetStreamName><OutputPath>${root}/\${StreamName}</OutputPath></Dump>`;
  const kiln = await Kiln.start({ llhls: `${LLHLS}<Dumps>${dump}</Dumps>` });
  t.teardown(() => kiln.stop());
  const infoFile = `${root}/info.xml`;
  const automatic = publishPattern(kiln.rtmpUrl('auto'), PICTURE);
  t.teardown(() => automatic.stop());
  const tags = encodeFlv([
    ...patternArguments(PICTURE).filter((argument) => argument !== '-re'),
    '-t',
    String(SECONDS),
  ]);
  const client = await RtmpClient.publish('live', { port: kiln.ports.rtmp });
  t.teardown(() => client.close());
  const send = (from: number, to: number): void => {
    for (const { type, time, body } of tags) if (time >= from && time < to) client[type](body, time);
  };
  send(0, MIDDLE_MS);
  await kiln.liveStream('live');
  const body = { outputStreamName: 'live', id: 'd', outputPath: `${root}/live`, infoFile };
  t.deepEqual((await kiln.api(`${STREAM}:startHlsDump`, 'POST', body)).body.response, ['d']);
  send(MIDDLE_MS, Infinity);
  client.socket.end();
  await until('the publisher is done', async () => /<Status>Completed</.test(await readFile(infoFile, 'utf8')));
  t.is(await decode(t, `${root}/live/llhls.m3u8`), SECONDS * PICTURE.rate);
  const recordings = '/v1/vhosts/default/apps/app/recordings';
  const listed = await until('it is listed', async () => {
    const { response } = (await kiln.api<{ recordings: { id: string }[] }>(`${recordings}?stream=live`)).body;
    return response.recordings[0];
  });
  t.like(listed, { type: 'dump', recordId: 'd', rootPath: `${root}/live`, path: 'llhls.m3u8', infoPath: infoFile });
  t.is((await kiln.api(`${recordings}/${listed.id}`, 'DELETE')).status, 200);
  t.deepEqual(await readdir(root), ['auto']);

  const segments = async () => (await readdir(`${root}/auto`)).filter((name) => /^seg_.*_video_/.test(name));
  await until('some is dumped', async () => (await segments()).length > 3);
  kiln.signal('SIGKILL');
  await kiln.exited();
  const frames = await decode(t, `${root}/auto/llhls.m3u8`);
  t.true(frames >= ((await segments()).length - 1) * PICTURE.rate, `${frames} frames`);
});
