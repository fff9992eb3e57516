import test from 'ava';
import type { RecordedFile } from '../../../src/playback/recorded-files.ts';
import { joined } from '../../../src/playback/spans.ts';

const VIDEO = [{ type: 'video', codec: 'H264', width: 640, height: 360 }];

function file(id: string, startTime: number, recordTime: number, more: Partial<RecordedFile> = {}): RecordedFile {
  return { id, recordId: 'one', startTime, recordTime, size: 5, tracks: VIDEO, node: undefined, ...more };
}

test('neighbouring files are joined into one span, also when they overlap', (t) => {
  const files = [file('a', 0, 1000), file('b', 1040, 1000), file('c', 1500, 200), file('d', 4100, 10)];
  t.deepEqual(joined(files), [
    { start: 0, end: 2040 },
    { start: 4100, end: 4110 },
  ]);
  t.deepEqual(joined([]), []);
});

test('files of other tracks are no part of a span', (t) => {
  const small = { tracks: [{ type: 'video', codec: 'H264', width: 320, height: 180 }] };
  t.deepEqual(joined([file('a', 0, 1000), file('b', 1000, 1000, small), file('c', 2000, 1000, small)]), [
    { start: 0, end: 1000 },
    { start: 1000, end: 3000 },
  ]);
  const [other, ...more] = joined([file('a', 0, 1000), file('b', 10, 900, { tracks: undefined }), file('c', 1010, 5)]);
  t.deepEqual([other, more], [{ start: 0, end: 1015 }, [{ start: 10, end: 910 }]]);
});
