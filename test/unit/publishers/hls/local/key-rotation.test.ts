import test from 'ava';
import { pino } from 'pino';
import { ConfigError } from '../../../../../src/config/config-error.ts';
import type { DrmKey, DrmKeys } from '../../../../../src/config/drm-info.ts';
import { KeyCounts } from '../../../../../src/publishers/hls/answer/counts.ts';
import { FileKeys } from '../../../../../src/publishers/hls/local/file-keys.ts';
import { KeyRotation, type SavedKey } from '../../../../../src/publishers/hls/local/key-rotation.ts';

const keyOf = (byte: number, more: Partial<DrmKey> = {}): DrmKey => ({
  ...{ scheme: 'cbcs', keyformat: 'fairplay', pssh: [], keyUrl: 'skd://k' },
  ...{ keyId: Buffer.alloc(16, byte), key: Buffer.alloc(16, byte), iv: Buffer.alloc(16, byte) },
  ...more,
});
const TWO_KEYS: DrmKeys = [keyOf(1), keyOf(2)];
const idOf = (byte: number): string => Buffer.alloc(16, byte).toString('hex');

interface Given {
  readonly keys?: DrmKeys;
  readonly period?: number;
  readonly read?: () => DrmKeys | undefined;
  readonly saved?: SavedKey;
  readonly now?: number;
}

function open({ keys = TWO_KEYS, period = 0, read = () => keys, saved, now = 0 }: Given = {}) {
  const counts = new KeyCounts();
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const source = new FileKeys({ keys, read, log }, saved?.id);
  const rotation = new KeyRotation({ source, period, counts, log }, saved, now);
  const newest = (): number => rotation.schedule.newest?.keyId[0] as number;
  return { rotation, counts, lines, newest };
}

test('on request the next key counts from the next segment on, and after the last the first', (t) => {
  const { rotation, counts, newest } = open();
  t.is(newest(), 1);
  rotation.rotate(5);
  t.deepEqual(
    [4, 5].map((msn) => rotation.schedule.at(msn)?.keyId[0]),
    [1, 2],
  );
  rotation.rotate(5);
  t.is(newest(), 2, 'that segment has another key already');
  rotation.rotate(6);
  t.is(newest(), 1);
  t.is(counts.rotations, 2);
  t.is(counts.earliest, undefined);
});

test('by a period, which goes on in time after it was missed', (t) => {
  const { rotation, counts, newest } = open({ period: 10, now: 1000 });
  t.is(counts.earliest, 11_000);
  rotation.tick(10_999, 3);
  t.is(newest(), 1);
  rotation.tick(11_200, 3);
  t.is(newest(), 2);
  t.is(counts.earliest, 21_000);
  rotation.tick(45_000, 9);
  t.is(newest(), 1);
  t.is(counts.earliest, 51_000);
  rotation.close();
  t.is(counts.earliest, undefined);
});

test('a stream that continues another goes on with its key and period', (t) => {
  const before = open({ period: 10, now: 0 });
  before.rotation.tick(10_000, 3);
  const saved = JSON.parse(JSON.stringify(before.rotation.state)) as SavedKey;
  t.deepEqual(saved, { id: idOf(2), rotatesAt: 20_000 });
  const { newest, counts } = open({ period: 10, now: 13_000, saved });
  t.is(newest(), 2);
  t.is(counts.earliest, 20_000);
  t.is(open({ saved: { id: idOf(9) } }).newest(), 1, 'a key that this node lacks');
  t.is(open({ period: 10, now: 1000, saved: { id: idOf(2), rotatesAt: 1e15 } }).counts.earliest, 11_000);
});

test('keys that were added to the file, or replaced there, are used', (t) => {
  let keys: DrmKeys = [keyOf(1)];
  const { rotation, newest } = open({ keys, read: () => keys });
  keys = [keyOf(1), keyOf(3)];
  rotation.rotate(1);
  t.is(newest(), 3);
  keys = [keyOf(4)];
  rotation.rotate(2);
  t.is(newest(), 4);
});

const UNUSABLE: Readonly<Record<string, () => DrmKeys | undefined>> = {
  'cannot be read': () => {
    throw new ConfigError(['drm.xml: ENOENT']);
  },
  'has no entry for it any more': () => undefined,
  'has another scheme': () => [keyOf(7, { scheme: 'cenc' })],
  'has other key systems': () => [keyOf(7, { keyUrl: undefined, pssh: [Buffer.alloc(32)] })],
};

for (const [what, read] of Object.entries(UNUSABLE)) {
  test(`a file that ${what}: the keys known so far rotate, which is logged and counted`, (t) => {
    const { rotation, counts, newest, lines } = open({ read, period: 10 });
    rotation.tick(10_000, 1);
    t.is(newest(), 2);
    rotation.tick(20_000, 2);
    t.is(newest(), 1);
    t.is(counts.failures, 2);
    t.is(lines.length, 1, 'said once');
  });
}

test('without another key, a rotation fails and is tried again', (t) => {
  let keys: DrmKeys = [keyOf(1)];
  const { rotation, counts, newest, lines } = open({ keys, read: () => keys, period: 3600 });
  t.throws(() => rotation.rotate(1), { code: 'keyNotRotated' });
  rotation.tick(3_600_000, 1);
  t.is(counts.earliest, 3_630_000);
  t.is(counts.failures, 2);
  rotation.tick(3_630_000, 2);
  t.is(lines.length, 1);
  keys = TWO_KEYS;
  rotation.tick(3_660_000, 3);
  t.is(newest(), 2);
  t.is(counts.earliest, 7_260_000);
});
