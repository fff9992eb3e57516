import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import type { DrmKey } from '../../../src/config/drm-info.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { UnsupportedTrackError } from '../../../src/containers/fmp4/sample-entry.ts';
import { encryptedFragments } from '../../../src/packaging/drm/encrypted-fragments.ts';
import { KeySchedule } from '../../../src/packaging/drm/key-schedule.ts';
import { FRAGMENTS, type PartForm } from '../../../src/packaging/part-form.ts';
import { FFMPEG7 } from '../../support/media/ffmpeg.ts';
import { AAC_LC, audioTrack, videoTrack } from '../../support/media/packets.ts';
import { box, samples, vector } from '../../unit/codecs/vectors.ts';

const run = promisify(execFile);
const KEY = '000102030405060708090a0b0c0d0e0f';
const video = (codec: 'H264' | 'H265' | 'AV1', config: string) => (file: Buffer) =>
  videoTrack({ codec, config: box(file, config) });

const TRACKS: Readonly<Record<string, (file: Buffer) => MediaTrack>> = {
  'h264-high-bframes': video('H264', 'avcC'),
  'h264-interlaced-hrd': video('H264', 'avcC'),
  'h265-main': video('H265', 'hvcC'),
  'h265-422-hrd': video('H265', 'hvcC'),
  'av1-svt': video('AV1', 'av1C'),
  'av1-aom-444': video('AV1', 'av1C'),
  'aac-stereo': () => audioTrack({ config: AAC_LC }),
  'opus-stereo': (file) => audioTrack({ codec: 'OPUS', config: box(file, 'dOps') }),
};

function keyOf(scheme: DrmKey['scheme']): DrmKey {
  const common = { keyId: Buffer.alloc(16, 0xab), iv: Buffer.alloc(16, 7), pssh: [] };
  return { ...common, scheme, key: Buffer.from(KEY, 'hex'), keyUrl: 'https://keys/1', keyformat: 'identity' };
}

const encrypted = (scheme: DrmKey['scheme']) => encryptedFragments(new KeySchedule(keyOf(scheme)));

/** A file of two fragments. */
function fragmented(form: PartForm<Buffer>, track: MediaTrack, data: readonly Buffer[]): Buffer {
  const duration = track.type === 'video' ? 3000 : 1024;
  const all = data.map((one, index) => ({ data: one, duration, compositionOffset: 0, key: index === 0 }));
  const init = form.describe(track, 0);
  const parts = [all.slice(0, 2), all.slice(2)].map(
    (some, index) => form.part(track, init, index + 1, 2 * index * duration, some, []).data,
  );
  return Buffer.concat([init.data, ...parts]);
}

for (const scheme of ['cenc', 'cbcs'] as const) {
  for (const [name, trackOf] of Object.entries(TRACKS)) {
    test(`ffmpeg decrypts ${scheme} of ${name} to the same bytes, and not with another key`, async (t) => {
      const folder = await mkdtemp(join(tmpdir(), 'kiln-drm-'));
      t.teardown(() => rm(folder, { recursive: true }));
      const file = vector(`${name}.mp4`);
      const track = trackOf(file);
      const data = samples(file);
      const copies = data.map((one) => Buffer.from(one));
      const hashes = async (form: PartForm<Buffer>, key?: string): Promise<string> => {
        const path = join(folder, 'media.mp4');
        await writeFile(path, fragmented(form, track, data));
        const decryption = key === undefined ? [] : ['-decryption_key', key];
        const { stdout } = await run(FFMPEG7, [
          ...['-v', 'error', ...decryption, '-i', path, '-c', 'copy', '-f', 'framemd5', '-'],
        ]);
        return stdout.replaceAll(/^#.*\n/gm, '').replaceAll(/^.*,/gm, '');
      };
      const clear = await hashes(FRAGMENTS);
      t.is(clear.trim().split('\n').length, data.length);
      t.is(await hashes(encrypted(scheme), KEY), clear);
      const wrong = (await hashes(encrypted(scheme), 'ff'.repeat(16))).split('\n');
      t.true(wrong.some((hash, index) => hash !== clear.split('\n')[index]));
      t.deepEqual(data, copies, 'the frames of the stream stay as they are');
    });
  }
}

for (const scheme of ['cenc', 'cbcs'] as const) {
  test(`segments from a rotation on decrypt with the next key of ${scheme} alone`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'kiln-drm-'));
    t.teardown(() => rm(folder, { recursive: true }));
    const file = vector('h264-high-bframes.mp4');
    const track = TRACKS['h264-high-bframes']?.(file) as MediaTrack;
    const data = samples(file);
    const next = {
      ...keyOf(scheme),
      keyId: Buffer.alloc(16, 0xcd),
      key: Buffer.alloc(16, 9),
      keyUrl: 'https://keys/2',
    };
    const schedule = new KeySchedule(keyOf(scheme));
    const form = encryptedFragments(schedule);
    const before = form.describe(track, 0, 7);
    form.part(track, before, 1, 0, [{ data: data[0] as Buffer, duration: 3000, compositionOffset: 0, key: true }], []);
    schedule.change(next, 8);
    t.false(form.isOver?.(before, 7));
    t.true(form.isOver?.(before, 8));
    const after = form.describe(track, 1, 8);
    t.false(form.isOver?.(after, 8));
    t.true(after.data.includes(next.keyId));
    t.notDeepEqual(after.keys, before.keys);
    const all = data.map((one, index) => ({ data: one, duration: 3000, compositionOffset: 0, key: index === 0 }));
    const path = join(folder, 'media.mp4');
    const hashes = async (bytes: readonly Buffer[], ...decryption: string[]): Promise<string> => {
      await writeFile(path, Buffer.concat(bytes));
      const { stdout } = await run(FFMPEG7, [
        ...['-v', 'error', ...decryption, '-i', path, '-c', 'copy', '-f', 'framemd5', '-'],
      ]);
      return stdout.replaceAll(/^#.*\n/gm, '').replaceAll(/^.*,/gm, '');
    };
    const plain = FRAGMENTS.describe(track, 0);
    const clear = await hashes([plain.data, FRAGMENTS.part(track, plain, 1, 0, all, []).data]);
    const media = [after.data, form.part(track, after, 2, 0, all, []).data];
    t.is(await hashes(media, '-decryption_key', next.key.toString('hex')), clear);
    t.not(await hashes(media, '-decryption_key', KEY), clear);
  });
}

test('a codec that cannot be encrypted is refused', (t) => {
  const form = encrypted('cenc');
  const track = videoTrack({ codec: 'VP9', config: Buffer.alloc(8) });
  t.throws(() => form.describe(track, 0), { instanceOf: UnsupportedTrackError, message: /VP9 cannot be encrypted/ });
});
