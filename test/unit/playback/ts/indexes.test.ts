import test from 'ava';
import type { ByteSource } from '../../../../src/playback/byte-source.ts';
import { ClipError } from '../../../../src/playback/clip/error.ts';
import { TsIndexes } from '../../../../src/playback/ts/indexes.ts';
import { audioPackets, audioTrack } from '../../../support/media/packets.ts';
import { MemoryFile } from '../../../support/recording/recorded-mp4.ts';
import { recordedTs } from '../../../support/recording/recorded-ts.ts';

const AUDIO = audioTrack();
const BYTES = recordedTs([AUDIO], audioPackets(AUDIO, { to: 10 }));

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
  const indexes = new TsIndexes();
  const file = new MemoryFile(BYTES);
  const all = await Promise.all([indexes.find('a', file), indexes.find('a', file)]);
  t.is(all[0], all[1]);
  const { reads } = file;
  t.is(await indexes.find('a', file), all[0] as never);
  t.is(file.reads, reads);
});

test('the scan of an MPEG-TS file ends when its last viewer leaves, and begins anew for the next', async (t) => {
  const indexes = new TsIndexes();
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
  const indexes = new TsIndexes();
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
  const indexes = new TsIndexes();
  const file = new MemoryFile(Buffer.alloc(1880));
  for (let round = 0; round < 2; round++) await t.throwsAsync(indexes.find('a', file), { instanceOf: ClipError });
  t.is(file.reads, 1);
});
