import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { usedRedis, startNode } from '../support/server/nodes.ts';
import { openS3 } from '../support/recording/s3.ts';
import { h264 } from '../support/rtmp/flv-media.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const APP = '/v1/vhosts/default/apps/app';

interface Recording {
  readonly isLocal: boolean;
  readonly upload?: { readonly state: string; readonly etag?: string };
}

/** Records some seconds of a stream of a node. */
async function record(node: Kiln): Promise<void> {
  const client = await RtmpClient.publish('s', { port: node.ports.rtmp, app: 'app' });
  const { config, frames } = h264();
  client.metadata({ videocodecid: 7, width: 640, height: 360 });
  await node.api(`${APP}:startRecord`, 'POST', {
    id: 'r',
    stream: { name: 's' },
    filePath: 'r.mp4',
    infoPath: 'r.xml',
  });
  client.video(config, 0);
  let at = 0;
  const sending = setInterval(() => frames.slice(0, 5).forEach((frame) => client.video(frame, at++ * 40)), 200);
  try {
    await until('it is recorded', async () => {
      const { body } = await node.api<{ recordTime?: number }[]>(`${APP}:records`);
      return body.response.some(({ recordTime = 0 }) => recordTime > 2000);
    });
    await node.api(`${APP}:stopRecord`, 'POST', { id: 'r' });
  } finally {
    clearInterval(sending);
    client.close();
  }
}

async function bytesOf(url: string, headers: Record<string, string> = {}): Promise<Buffer> {
  return await until(url, async () => {
    const answer = await fetch(url, { headers });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return answer.ok && bytes;
  });
}

test('recordings that are in a bucket alone are played by any node, whether it has the keys or not', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-bucket-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const s3 = await openS3(t);
  const { endpoint, accessKeyId, secretAccessKey } = s3.settings;
  const upload = `<Record><Upload><Endpoint>${endpoint}</Endpoint><Bucket>records</Bucket><DeleteLocal>true</DeleteLocal>
    <AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey></Upload></Record>`;
  const redis = await usedRedis(t);
  const start = (id: string, more: string) =>
    startNode(t, redis, id, {
      publishers: `<FILE><RootPath>${join(folder, id)}</RootPath>${more}</FILE><Playback/>`,
    });
  const [a, b, c] = await Promise.all([start('a', upload), start('b', upload), start('c', '')]);
  // nothing is uploaded while it is compared with
  s3.proxy.refuse = ({ method }) => (method === 'GET' ? undefined : 503);
  await record(a);
  const [span] = await until('it is listed', async () => {
    const answer = await fetch(c.httpUrl('/app/s/list'));
    return answer.status === 200 && ((await answer.json()) as { start: string; duration: number; url: string }[]);
  });
  const { pathname, search } = new URL(span?.url ?? '');
  const whole = await bytesOf(a.httpUrl(`${pathname}${search}&format=mp4`));
  s3.proxy.refuse = () => undefined;
  // an outage makes uploads pause
  await a.restart();
  const [uploaded] = await until('it is uploaded', async () => {
    const { body } = await a.api<{ recordings: Recording[] }>(`${APP}/recordings`);
    return body.response?.recordings.every(({ isLocal }) => !isLocal) && body.response.recordings;
  });
  t.like(uploaded, { isLocal: false, upload: { state: 'uploaded' } });
  t.false((await readdir(join(folder, 'a'))).includes('r.mp4'));
  s3.requests.length = 0;
  for (const node of [a, b, c]) {
    const url = node.httpUrl(`${pathname}${search}&format=mp4`);
    t.true((await bytesOf(url)).equals(whole), url);
    t.deepEqual(await bytesOf(url, { range: 'bytes=100-299' }), whole.subarray(100, 300));
  }
  t.true(s3.requests.some(({ method }) => method === 'GET'));
  const list = b.httpUrl(`/app/s/recorded.m3u8${search}`);
  const [media = ''] = urisOf((await bytesOf(list)).toString(), list);
  for (const uri of urisOf((await bytesOf(media)).toString(), media)) t.true((await bytesOf(uri)).length > 0, uri);
  t.notRegex(a.log + b.log, new RegExp(secretAccessKey));
});
