import { randomBytes } from 'node:crypto';
import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import Type from 'typebox';
import { Registry } from '../../../src/core/registry.ts';
import { definePeerCall } from '../../../src/peers/peer-call.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { SourceError } from '../../../src/playback/byte-source.ts';
import { FileReads } from '../../../src/playback/file-reads.ts';
import { ClipError } from '../../../src/playback/clip/error.ts';
import { RecordedFiles } from '../../../src/playback/recorded-files.ts';
import { createVhost } from '../../support/api/api.ts';
import { linkedNodes } from '../../support/cluster/linked-nodes.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../support/media/packets.ts';
import { memoryBucket } from '../../support/playback/stored.ts';
import { openFinished, openRecordings } from '../../support/recording/finished.ts';
import { distinct, recordedTs } from '../../support/recording/recorded-ts.ts';

const NOON = Date.UTC(2026, 2, 5, 12);
const SECOND = 1000;

/** Nodes `a` and `b` with finished files of `app/stream`, and `lost`, which does not answer. */
function open(t: ExecutionContext, ...ids: readonly string[]) {
  const registry = new Registry();
  createVhost(registry, { name: 'default', host: { names: ['*'] }, applications: [{ name: 'app', type: 'live' }] });
  t.teardown(() => registry.close('the test is over'));
  const application = registry.vhost('default').application('app');
  const rows = [...ids, 'lost'].map((id) => ({ id, incarnation: `of ${id}`, state: id === 'lost' ? 'lost' : 'alive' }));
  const nodes = linkedNodes(...ids).map(({ self, calls }) => {
    const finished = openFinished(t);
    const recordings = openRecordings(finished.folder);
    const lines: { msg: string; node?: string }[] = [];
    const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const others = new OtherNodes({ self, nodes: () => rows as never }, calls);
    const files = new RecordedFiles({ recordings, others, calls, log });
    const bucket = memoryBucket(700_000);
    const reads = new FileReads({ recordings, calls, stored: bucket.stored, log });
    t.teardown(() => reads.close());
    const record = (time: number, content?: Buffer, extension = 'mp4') =>
      finished.finish(
        NOON + time,
        { vhost: 'default', app: 'app', stream: 'stream', pathBelow: `${time}.${extension}` },
        content,
      );
    return { ...finished, self, calls, files, reads, lines, record, bucket };
  });
  return { application, names: { vhost: 'default', app: 'app' }, nodes };
}

type Node = ReturnType<typeof open>['nodes'][number];

test('files of all nodes are found, in the order of time', async (t) => {
  const { application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const ids = [await a.record(0), await b.record(SECOND), await a.record(2 * SECOND)];
  const found = await a.files.find(application, 'stream', {}, 10);
  t.deepEqual(
    found.files.map(({ id, node }) => [id, node?.id]),
    ids.map((id, index) => [id, index === 1 ? 'b' : undefined]),
  );
  t.true(found.isComplete);
  const some = await b.files.find(application, 'stream', { start: NOON + 500, end: NOON + 2 * SECOND }, 10);
  t.deepEqual(
    some.files.map(({ id, node }) => [id, node?.id]),
    [
      [ids[0], 'a'],
      [ids[1], undefined],
    ] as never,
  );
  t.deepEqual((await b.files.find(application, 'other', {}, 10)).files, []);
  await t.throwsAsync(b.files.find(application, 'stream', {}, 2), { code: 'playbackTooMany' });
});

test('why files of other nodes are not played is known, and no request reads all that an application has', async (t) => {
  const { application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  await b.record(0, undefined, 'webm');
  const { files, unplayed } = await a.files.find(application, 'stream', {}, 10);
  t.deepEqual(files, []);
  t.regex(unplayed.join(), /^a recording as WebM/);
  let pages = 0;
  const recordings = { page: () => Promise.resolve({ recorded: [], cursor: `${pages++}` }) };
  const [other] = linkedNodes('c');
  const calls = other?.calls as never;
  const wide = new RecordedFiles({ recordings, others: undefined, calls, log: pino({ level: 'silent' }) });
  await t.throwsAsync(wide.find(application, 'stream', {}, 10), { code: 'playbackTooWide' });
  t.is(pages, 40);
});

test('a file that was overwritten in place is not read with the index of the one before', async (t) => {
  const { names, application, nodes } = open(t, 'a');
  const [a] = nodes as [Node];
  await a.record(0, Buffer.alloc(100, 1));
  const { files } = await a.files.find(application, 'stream', {}, 10);
  const [file] = files as [never];
  const [part] = await a.reads.parts(names, file);
  t.deepEqual(await part?.source.read(0, 2), Buffer.of(1, 1));
  const stamp = await a.reads.stamp(names, file);
  await a.reads.close();
  writeFileSync(join(a.root, '0.mp4'), Buffer.alloc(100, 2));
  utimesSync(join(a.root, '0.mp4'), 1, 1);
  t.not(await a.reads.stamp(names, file), stamp);
  await t.throwsAsync(async () => await part?.source.read(0, 2), { instanceOf: SourceError, message: /has changed/ });
  const [again] = await a.reads.parts(names, file);
  t.deepEqual(await again?.source.read(0, 2), Buffer.of(2, 2));
});

test('a node that does not answer is named in the log, once', async (t) => {
  const { application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const id = await a.record(0);
  rmSync(join(b.folder, 'recorded'), { recursive: true, force: true });
  // the index cannot be read: its folder is a file
  writeFileSync(join(b.folder, 'recorded'), '');
  for (let times = 0; times < 2; times++) {
    const { files, isComplete } = await a.files.find(application, 'stream', {}, 10);
    t.deepEqual([files.map((file) => file.id), isComplete], [[id], false]);
  }
  t.deepEqual(
    a.lines.map(({ node, msg }) => [node, msg]),
    [['b', 'a node did not answer: its recordings cannot be played']],
  );
});

test('bytes of a file are read on its node and on others', async (t) => {
  const { names, application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const content = randomBytes(700_000);
  await a.record(0, content);
  for (const node of [a, b]) {
    const { files } = await node.files.find(application, 'stream', {}, 10);
    const source = node.reads.source(names, files[0] as never);
    t.is(source.size, content.length);
    t.true((await source.read(0, content.length)).equals(content));
    t.deepEqual(await source.read(10, 0), Buffer.alloc(0));
    const pieces = await Promise.all([1, 300_000, 699_990].map((at) => source.read(at, 10)));
    t.deepEqual(Buffer.concat(pieces), Buffer.concat([1, 300_000, 699_990].map((at) => content.subarray(at, at + 10))));
    await t.throwsAsync(source.read(699_990, 11), { instanceOf: SourceError });
    await t.throwsAsync(source.read(0, 10, AbortSignal.abort(new Error('gone'))), { message: 'gone' });
  }
});

test('a file that is gone or another one is not read', async (t) => {
  const { names, application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  await a.record(0, randomBytes(100));
  await a.record(SECOND, randomBytes(100));
  const { files } = await a.files.find(application, 'stream', {}, 10);
  writeFileSync(join(a.root, '0.mp4'), 'shorter');
  rmSync(join(a.root, '1000.mp4'));
  for (const file of files) {
    await t.throwsAsync(a.reads.source(names, file).read(0, 1), { instanceOf: SourceError });
    await t.throwsAsync(b.reads.source(names, { ...file, node: a.self }).read(0, 1), { instanceOf: SourceError });
  }
  const unknown = { ...files[0], id: `20260305T120000000-${'f'.repeat(32)}` } as never;
  await t.throwsAsync(a.reads.source(names, unknown).read(0, 1), { instanceOf: SourceError });
  const lost = { ...files[0], node: { id: 'lost', incarnation: 'x' } } as never;
  await t.throwsAsync(a.reads.source(names, lost).read(0, 1), { instanceOf: SourceError });
});

/** Has a file of a node in the bucket alone. */
async function upload({ index, root, bucket: { file } }: Node, id: string): Promise<void> {
  const { bucket, key, url, etag } = file;
  const uploaded = { state: 'uploaded', bucket, key, url, ...(etag !== undefined && { etag }) } as const;
  rmSync(join(root, '0.mp4'));
  await index.note({ vhost: 'default', app: 'app' }, id, uploaded, false);
}

test('a file that is in a bucket alone is read from there by the node that is asked', async (t) => {
  const { names, application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const id = await a.record(0, a.bucket.bytes);
  await upload(a, id);
  for (const [node, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const { files } = await node.files.find(application, 'stream', {}, 10);
    t.deepEqual(files[0]?.stored, a.bucket.file);
    const { length } = node.bucket.bytes;
    const source = node.reads.source(names, files[0] as never);
    t.is(source.size, length);
    const before = other.bucket.reads.length;
    t.true((await source.read(0, length)).equals(node.bucket.bytes));
    t.deepEqual(await source.read(300_000, 5), node.bucket.bytes.subarray(300_000, 300_005));
    t.is(other.bucket.reads.length, before);
    t.true(node.bucket.reads.length > 0);
  }
});

test('a node that cannot read the bucket asks the one that has uploaded the file', async (t) => {
  const { names, application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  await upload(a, await a.record(0, a.bucket.bytes));
  b.bucket.state.isReached = false;
  const { files } = await b.files.find(application, 'stream', {}, 10);
  const source = b.reads.source(names, files[0] as never);
  t.true((await source.read(0, 700_000)).equals(a.bucket.bytes));
  t.is(b.bucket.reads.length, 0);
  a.bucket.state.etag = 'two';
  const other = await a.record(SECOND, a.bucket.bytes);
  rmSync(join(a.root, '1000.mp4'));
  const { bucket, key, url } = a.bucket.file;
  await a.index.note(names, other, { state: 'uploaded', bucket, key, url, etag: 'one' }, false);
  const again = (await b.files.find(application, 'stream', {}, 10)).files;
  await t.throwsAsync(b.reads.source(names, again[1] as never).read(0, 1), {
    instanceOf: SourceError,
    message: /it was replaced by another object: k in the bucket b/,
  });
});

test('a file that is deleted after its upload while it is played goes on from the bucket', async (t) => {
  const { names, application, nodes } = open(t, 'a');
  const [a] = nodes as [Node];
  const id = await a.record(0, a.bucket.bytes);
  const { files } = await a.files.find(application, 'stream', {}, 10);
  t.is(files[0]?.stored, undefined);
  const source = a.reads.source(names, files[0] as never);
  t.deepEqual(await source.read(0, 10), a.bucket.bytes.subarray(0, 10));
  await upload(a, id);
  t.deepEqual(await source.read(10, 10), a.bucket.bytes.subarray(10, 20));
  await a.reads.close();
  t.deepEqual(await source.read(20, 10), a.bucket.bytes.subarray(20, 30));
  t.true(a.bucket.reads.length > 0);
});

test('a file that was not uploaded is not played when it is deleted', async (t) => {
  const { application, nodes } = open(t, 'a');
  const [a] = nodes as [Node];
  const id = await a.record(0, a.bucket.bytes);
  await a.index.note({ vhost: 'default', app: 'app' }, id, { state: 'failed' }, false);
  t.deepEqual((await a.files.find(application, 'stream', {}, 10)).files, []);
});

test('parts of an MPEG-TS file are read on its node and on others, as MP4 files', async (t) => {
  const { names, application, nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  const [video, audio] = [videoTrack(), audioTrack()];
  const changed = videoTrack({ config: AVC_HIGH });
  const packets = interleaved(
    videoPackets(video, { to: 2 }),
    videoPackets(changed, { from: 2, to: 4 }),
    audioPackets(audio, { to: 4 }),
  );
  await a.record(0, recordedTs([video, audio], distinct(packets)), 'ts');
  await a.record(SECOND, randomBytes(1000), 'ts');
  const bytes: Buffer[][] = [];
  for (const node of [a, b]) {
    const { files } = await node.files.find(application, 'stream', {}, 10);
    const parts = await node.reads.parts(names, files[0] as never);
    t.deepEqual(
      parts.map(({ begin }) => begin),
      [0, 2],
    );
    bytes.push(await Promise.all(parts.map(({ source }) => source.read(0, source.size))));
    const { source } = parts[1] as (typeof parts)[0];
    await t.throwsAsync(source.read(source.size - 1, 2), { instanceOf: SourceError });
    await t.throwsAsync(node.reads.source(names, files[0] as never, 2).read(0, 1), { instanceOf: SourceError });
    const wrong = node.reads.parts(names, files[1] as never);
    const kind = node === a ? ClipError : SourceError;
    const failure = await t.throwsAsync(wrong, { message: /the MPEG-TS file is damaged/ });
    t.true(failure instanceof kind);
  }
  t.deepEqual(bytes[0], bytes[1]);
});

test('a node that asks for no containers, as of an older version, gets MP4 files alone', async (t) => {
  const { nodes } = open(t, 'a', 'b');
  const [a, b] = nodes as [Node, Node];
  await a.record(0);
  await a.record(SECOND, undefined, 'ts');
  const names = { vhost: 'default', app: 'app', stream: 'stream' };
  const list = definePeerCall('playback/files', Type.Any(), Type.Any());
  const { files } = (await b.calls.call(a.self, list, names, 1000)) as { files: { startTime: number }[] };
  t.deepEqual(
    files.map(({ startTime }) => startTime),
    [NOON],
  );
});
