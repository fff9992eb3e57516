import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { ByteSource } from '../../../../src/playback/byte-source.ts';
import { ClipError } from '../../../../src/playback/clip/error.ts';
import { TsIndexes } from '../../../../src/playback/ts/indexes.ts';
import { DerivedFiles } from '../../../../src/recording/finished/derived-files.ts';
import { audioPackets, audioTrack } from '../../../support/media/packets.ts';
import { MemoryFile } from '../../../support/recording/recorded-mp4.ts';
import { recordedTs } from '../../../support/recording/recorded-ts.ts';

const AUDIO = audioTrack();
const BYTES = recordedTs([AUDIO], audioPackets(AUDIO, { to: 10 }));

const ID = `20260305T120000000-${'a'.repeat(32)}`;

/** A node's indexes, and those of its next run. */
function open(t: ExecutionContext) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-indexes-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const lines: { msg: string }[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const again = () => new TsIndexes({ derived: new DerivedFiles(join(folder, 'playback')), log });
  return { folder, lines, indexes: again(), again, path: join(folder, 'playback/20260305', `${ID}.index`) };
}

/** A file that was recorded. */
function stamped(stamp = 'stamp', isThere = true) {
  const file = new MemoryFile(BYTES);
  return Object.assign(file, { stamp, isThere: async () => isThere });
}

/** A file whose reads wait. */
function slow() {
  const file = new MemoryFile(BYTES);
  const { promise, resolve } = Promise.withResolvers<void>();
  let reads = 0;
  const source: ByteSource = {
    size: file.size,
    read: async (offset, length, signal) => {
      reads++;
      await promise;
      return await file.read(offset, length, signal);
    },
  };
  return { source, go: resolve, reads: () => reads };
}

test('an MPEG-TS file is scanned once for all who play it', async (t) => {
  const { indexes } = open(t);
  const file = new MemoryFile(BYTES);
  const all = await Promise.all([indexes.find('a', file), indexes.find('a', file)]);
  t.is(all[0], all[1]);
  const { reads } = file;
  t.is(await indexes.find('a', file), all[0] as never);
  t.is(file.reads, reads);
});

test('the scan of an MPEG-TS file ends when its last viewer leaves, and begins anew for the next', async (t) => {
  const { indexes } = open(t);
  const { source, go, reads } = slow();
  const leaving = new AbortController();
  const left = indexes.find('a', source, leaving.signal);
  leaving.abort(new Error('left'));
  await t.throwsAsync(left, { message: 'left' });
  const next = indexes.find('a', source);
  go();
  t.is((await next).length, 1);
  t.is(reads(), 2);
});

test('two MPEG-TS files are scanned at a time, and a limited number waits', async (t) => {
  const { indexes } = open(t);
  const files = Array.from({ length: 67 }, slow);
  const found = files.map(({ source }, index) => indexes.find(`${index}`, source));
  await t.throwsAsync(found[66] as Promise<unknown>, { code: 'playbackBusy' });
  t.deepEqual(
    files.map(({ reads }) => reads()).filter((count) => count > 0),
    [1, 1],
  );
  for (const { go } of files) go();
  t.is((await Promise.all(found.slice(0, 66))).length, 66);
  t.is((await indexes.find('66', files[66]!.source)).length, 1);
});

test('an MPEG-TS file that cannot be played is not scanned again', async (t) => {
  const { indexes } = open(t);
  const file = new MemoryFile(Buffer.alloc(1880));
  for (let round = 0; round < 2; round++) await t.throwsAsync(indexes.find('a', file), { instanceOf: ClipError });
  t.is(file.reads, 1);
});

test('the index of an MPEG-TS file is stored for the next run', async (t) => {
  const { indexes, again } = open(t);
  const parts = await indexes.find(ID, stamped());
  await indexes.settled();
  const file = stamped();
  t.deepEqual(await again().find(ID, file), parts);
  t.is(file.reads, 0);
});

test('the index of an MPEG-TS file that nobody plays is stored, and not kept in memory', async (t) => {
  const { indexes, path } = open(t);
  await indexes.prepare(ID, stamped(), new AbortController().signal);
  const file = stamped();
  t.is((await indexes.find(ID, file)).length, 1);
  t.is(file.reads, 0);
  rmSync(path);
  await indexes.prepare(ID, file, new AbortController().signal);
  t.is(file.reads, 0);
});

test('a viewer joins the scan of an MPEG-TS file that was finished a moment ago', async (t) => {
  const { indexes } = open(t);
  const { source, go, reads } = slow();
  const file = Object.assign(source, { stamp: 'stamp', isThere: async () => true });
  const prepared = indexes.prepare(ID, file, new AbortController().signal);
  const found = indexes.find(ID, file);
  go();
  await prepared;
  t.is((await found).length, 1);
  t.is(reads(), 1);
});

test('an MPEG-TS file is scanned again after its index was damaged, or the file was changed', async (t) => {
  const { indexes, again, path } = open(t);
  await indexes.find(ID, stamped());
  await indexes.settled();
  const whole = readFileSync(path);
  for (const bytes of [whole.subarray(0, 100), Buffer.from('something else'), Buffer.alloc(0)]) {
    writeFileSync(path, bytes);
    const [next, file] = [again(), stamped()];
    t.is((await next.find(ID, file)).length, 1);
    t.is(file.reads, 1);
    await next.settled();
    t.deepEqual(readFileSync(path), whole);
  }
  const changed = stamped('later');
  t.is((await indexes.find(ID, changed)).length, 1);
  t.is(changed.reads, 1);
});

test('an MPEG-TS file is played where its index cannot be stored, and the log says so once', async (t) => {
  const { folder, indexes, again, lines } = open(t);
  writeFileSync(join(folder, 'playback'), 'no folder');
  for (const stamp of ['one', 'two']) t.is((await indexes.find(ID, stamped(stamp))).length, 1);
  await indexes.settled();
  t.deepEqual(
    lines.map(({ msg }) => msg),
    ['the index of a recording in MPEG-TS could not be stored or read: its file is read again when it is played'],
  );
  rmSync(join(folder, 'playback'));
  await indexes.find(ID, stamped('three'));
  await indexes.settled();
  const file = stamped('three');
  await again().find(ID, file);
  t.is(file.reads, 0);
});

test('the index of an MPEG-TS file that was deleted meanwhile is not stored', async (t) => {
  const { indexes, path } = open(t);
  t.is((await indexes.find(ID, stamped('stamp', false))).length, 1);
  await indexes.settled();
  t.false(existsSync(path));
});
