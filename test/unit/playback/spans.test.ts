import test from 'ava';
import type { RecordedFile } from '../../../src/playback/recorded-files.ts';
import { joined, playedOf, unbroken } from '../../../src/playback/spans.ts';

const VIDEO = [{ type: 'video', codec: 'H264', width: 640, height: 360 }];

function file(id: string, startTime: number, recordTime: number, more: Partial<RecordedFile> = {}): RecordedFile {
  return { id, recordId: 'one', startTime, recordTime, size: 5, tracks: VIDEO, node: undefined, ...more };
}

const shown = (files: readonly RecordedFile[], start: number, end: number) =>
  playedOf(files, start, end)
    .map(({ id }) => id)
    .join(' ');

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
  const [other, ...more] = joined([
    file('a', 0, 1000),
    file('b', 10, 900, { tracks: undefined, recordId: 'two' }),
    file('c', 1010, 5),
  ]);
  t.deepEqual([other, more], [{ start: 0, end: 1015 }, [{ start: 10, end: 910 }]]);
});

test('a span ends where a recording changes its format, however short another one was', (t) => {
  const [one, other] = ['x', 'y'].map((format) => ({
    tracks: [{ ...VIDEO[0], type: 'video', codec: 'H264', format }],
  }));
  const files = [file('a', 0, 1000, one), file('b', 1000, 500, other), file('c', 1500, 1000, one)];
  t.deepEqual(joined(files), [
    { start: 0, end: 1000 },
    { start: 1000, end: 1500 },
    { start: 1500, end: 2500 },
  ]);
  t.deepEqual(joined([...files.slice(0, 1), file('d', 1000, 10, { ...one, recordId: 'two' })]), [
    { start: 0, end: 1010 },
  ]);
});

test('a clip plays the files of its time, each from where the last one ends', (t) => {
  const files = [file('a', 0, 1000), file('b', 990, 1010), file('c', 2040, 960)];
  t.is(shown(files, 500, 2500), 'a b c');
  t.is(shown(files, 2010, 2030), '');
  t.is(shown(files, 2010, 9000), 'c');
  t.is(shown(files, 1000, 2000), 'b');
  t.is(shown([], 0, 10), '');
});

test('a clip follows one recording where there are several at a time', (t) => {
  const other = { recordId: 'two' };
  const files = [file('a', 0, 1000), file('x', 200, 1800, other), file('b', 1005, 1000), file('y', 2000, 2000, other)];
  t.is(shown(files, 0, 3000), 'a b y');
  t.is(shown(files, 300, 1500), 'x');
});

test('of files that one recording has twice, each moment is played once', (t) => {
  const files = [file('a', 0, 1000), file('b', 0, 1000), file('c', 100, 100), file('d', 1000, 0)];
  t.is(shown(files, 0, 3000), 'a');
});

test('a clip that may have no break ends in front of the first one', (t) => {
  const files = [file('a', 0, 1000), file('b', 2900, 1000), file('c', 3800, 50), file('d', 5900, 1000)];
  t.deepEqual(
    unbroken(files).map(({ id }) => id),
    ['a', 'b', 'c'],
  );
  t.deepEqual(unbroken(files.slice(0, 2)), files.slice(0, 2));
  t.deepEqual(unbroken([]), []);
});
