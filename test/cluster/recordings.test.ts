import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { h264 } from '../support/rtmp/flv-media.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { until } from '../support/time/until.ts';

const APP = '/v1/vhosts/default/apps/app';
const RECORDS = mkdtempSync(join(tmpdir(), 'kiln-records-'));
test.after.always(() => rmSync(RECORDS, { recursive: true, force: true }));

const nodes = sharedNodes(['a', 'b'], { publishers: `<FILE><RootPath>${RECORDS}</RootPath></FILE>` });

interface Recording {
  readonly id: string;
  readonly node: string;
  readonly stream: string;
  readonly path: string;
  readonly tracks: readonly object[];
}

interface Listed {
  readonly recordings: readonly Recording[];
  readonly cursor?: string;
  readonly silentNodes?: readonly string[];
}

/** What both nodes have: one that is busy may not answer in time. */
const list = (node: Kiln, query = '') =>
  until('both nodes answer', async () => {
    const { response } = (await node.api<Listed>(`${APP}/recordings${query}`)).body;
    return response.silentNodes === undefined && response;
  });

/** Status of a call about one file, when both nodes have answered. */
const statusOf = (node: Kiln, id: string, method = 'GET') =>
  until('both nodes answer', async () => {
    const { status } = await node.api(`${APP}/recordings/${id}`, method);
    return status !== 503 && status;
  });

/** Records a file of a stream that a node gets. */
async function record(node: Kiln, stream: string): Promise<Recording> {
  const client = await RtmpClient.publish(stream, { port: node.ports.rtmp, app: 'app' });
  const { config, frames } = h264();
  client.metadata({ videocodecid: 7, width: 640, height: 360 });
  const spec = { id: stream, stream: { name: stream }, filePath: `${stream}.mp4`, infoPath: `${stream}.xml` };
  t200((await node.api(`${APP}:startRecord`, 'POST', spec)).status);
  client.video(config, 0);
  let at = 0;
  const sending = setInterval(() => frames.slice(0, 5).forEach((frame) => client.video(frame, at++ * 40)), 100);
  try {
    await until('it is recorded', async () => {
      const { body } = await node.api<{ state: string; recordBytes?: number }[]>(`${APP}:records`);
      return body.response.some(({ state, recordBytes = 0 }) => state === 'recording' && recordBytes > 0);
    });
    t200((await node.api(`${APP}:stopRecord`, 'POST', { id: stream })).status);
  } finally {
    clearInterval(sending);
    client.close();
  }
  return await until(`${stream} is listed`, async () => (await list(node, `?stream=${stream}`)).recordings[0]);
}

function t200(status: number): void {
  if (status !== 200) throw new Error(`status ${status}`);
}

test('files of all nodes are listed by each, and deleted through any', async (t) => {
  const [a, b] = nodes() as [Kiln, Kiln];
  const [first, second] = [await record(a, 'one'), await record(b, 'two')];
  t.like(first, { path: 'one.mp4', tracks: [{ type: 'video', codec: 'H264' }] });
  t.not(first.node, second.node);
  for (const node of [a, b]) {
    t.deepEqual(await list(node), { recordings: [first, second] });
    const page = await list(node, '?limit=1');
    t.deepEqual(page, { recordings: [first], cursor: first.id });
    t.deepEqual(await list(node, `?limit=1&cursor=${page.cursor}`), { recordings: [second] });
    t.is(await statusOf(node, first.id), 200);
    t.deepEqual((await node.api<Recording>(`${APP}/recordings/${first.id}`)).body.response, first);
    t.is(
      await statusOf(
        node,
        first.id.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      ),
      404,
    );
  }
  t.is(await statusOf(b, first.id, 'DELETE'), 200);
  t.deepEqual([existsSync(join(RECORDS, 'one.mp4')), existsSync(join(RECORDS, 'one.xml'))], [false, false]);
  t.deepEqual([existsSync(join(RECORDS, 'two.mp4')), existsSync(join(RECORDS, 'two.xml'))], [true, true]);
  for (const node of [a, b]) {
    t.deepEqual(await list(node), { recordings: [second] });
    t.is(await statusOf(node, first.id, 'DELETE'), 404);
  }
});
